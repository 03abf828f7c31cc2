"""The dashboard's navigation. `exgrpo app` runs it; every screen is a file in `app/screens`.

The folder must not be called `pages`: Streamlit would then run a screen without this file when
the first address that a new server is asked for is a permalink. An error that is the reader's to
mend takes the place of the rest of a screen.
"""

from pathlib import Path

import streamlit as st

from analysis.errors import UserError
from app.components.about import about
from app.components.errors import show_error

STYLE = """<style>
[data-testid='stMainBlockContainer'] {padding: 3.5rem 2rem 2rem;}
[data-testid='stSidebarHeader'] {height: 1.5rem;}
.stTextArea textarea {font-family: var(--st-code-font, monospace); font-size: 0.82rem;}
</style>"""

# An icon of ours: for a named one the browser would ask another server.
ICON = Path(__file__).parent / "icon.svg"

st.set_page_config(page_title="ExGRPO workbench", page_icon=str(ICON), layout="wide")
st.html(STYLE)
SCREENS = {
    "Study": [
        st.Page("screens/overview.py", title="Overview", icon=":material/insights:", default=True),
        st.Page("screens/claims.py", title="Claims", icon=":material/gavel:"),
        st.Page("screens/runs.py", title="Runs", icon=":material/list_alt:"),
        st.Page("screens/live.py", title="Live", icon=":material/monitoring:"),
    ],
    "Read": [
        st.Page("screens/trajectories.py", title="Trajectories", icon=":material/segment:"),
        st.Page("screens/question.py", title="Question", icon=":material/timeline:"),
        st.Page("screens/lineage.py", title="Lineage", icon=":material/account_tree:"),
        st.Page("screens/compare.py", title="Compare", icon=":material/difference:"),
    ],
    "Why": [
        st.Page("screens/maps.py", title="Difficulty and entropy", icon=":material/grid_on:"),
        st.Page("screens/snowball.py", title="Snowball", icon=":material/ac_unit:"),
        st.Page("screens/buffer.py", title="Experience buffer", icon=":material/inventory_2:"),
    ],
    "Ask": [st.Page("screens/sql.py", title="SQL", icon=":material/database:")],
}
screen = st.navigation(SCREENS, position="top")
about()
try:
    screen.run()
except UserError as error:
    show_error(error)
