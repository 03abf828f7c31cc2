"""What the paper prints, asked in SQL: `ask("gains")`."""

from analysis.paper.tables import QUESTIONS, TABLES, ask, paper_queries, table

__all__ = ["QUESTIONS", "TABLES", "ask", "paper_queries", "table"]
