"""The dashboard's navigation. `exgrpo app` runs it; every screen is a file in `app/screens`.

The folder must not be called `pages`: Streamlit would then run a screen without this file when
the first address that a new server is asked for is a permalink.
"""

import streamlit as st

STYLE = """<style>
[data-testid='stMainBlockContainer'] {padding: 3.5rem 2rem 2rem;}
[data-testid='stSidebarHeader'] {height: 1.5rem;}
.stTextArea textarea {font-family: var(--st-code-font, monospace); font-size: 0.82rem;}
</style>"""

st.set_page_config(page_title="ExGRPO workbench", layout="wide")
st.html(STYLE)
st.navigation(
    [
        st.Page("screens/overview.py", title="Overview", icon=":material/insights:", default=True),
        st.Page("screens/trajectories.py", title="Trajectories", icon=":material/segment:"),
        st.Page("screens/sql.py", title="SQL", icon=":material/database:"),
    ],
    position="top",
).run()
