"""Prompts of the rankers to compare and of the judge of answers, one pair of files each.

Source:
    Our own wording. What they ask for follows the works named in the files that use them.
"""

from langchain_core.messages import BaseMessage

from deepera_graph.prompts import messages_of


def messages(node: str, /, **values: str) -> list[BaseMessage]:
    """Fill the templates of a node.

    Raises:
        PromptError: The values are not exactly the placeholders, or there is no such template.
    """
    return messages_of(__name__, node, **values)
