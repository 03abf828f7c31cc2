"""`python app/serve.py run PAGE OPTIONS`: Streamlit's own command, asking nobody on the internet.

When a page of another site knocks, Streamlit would ask a server of Amazon for this machine's
address before it refuses.
"""

from streamlit import net_util
from streamlit.web import cli


def nowhere() -> None:
    """This machine's address as the internet sees it: not known."""


if __name__ == "__main__":
    net_util.get_external_ip = nowhere
    cli.main(prog_name="streamlit")
