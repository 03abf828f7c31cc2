"""The dashboard's navigation. `exgrpo app` runs it; every screen is a file in `app/screens`.

The folder must not be called `pages`: Streamlit would then run a screen without this file when
the first address that a new server is asked for is a permalink. An error that is the reader's to
mend takes the place of the rest of a screen.
"""

import streamlit as st

from analysis.errors import UserError
from app.components.errors import show_error

STYLE = """<style>
[data-testid='stMainBlockContainer'] {padding: 3.5rem 2rem 2rem;}
[data-testid='stSidebarHeader'] {height: 1.5rem;}
.stTextArea textarea {font-family: var(--st-code-font, monospace); font-size: 0.82rem;}
</style>"""

st.set_page_config(page_title="ExGRPO workbench", layout="wide")
st.html(STYLE)
screen = st.navigation(
    [
        st.Page("screens/overview.py", title="Overview", icon=":material/insights:", default=True),
        st.Page("screens/live.py", title="Live", icon=":material/monitoring:"),
        st.Page("screens/trajectories.py", title="Trajectories", icon=":material/segment:"),
        st.Page("screens/sql.py", title="SQL", icon=":material/database:"),
    ],
    position="top",
)
try:
    screen.run()
except UserError as error:
    show_error(error)
