"""Makes the pictures of the pages in docs/pictures, of a real server in a real browser."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
SETTINGS = 'provider = "scripted"\n[http]\nport = 0\n[scripted]\nreplies = ["Hello."]\n'


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "config.toml").write_text(SETTINGS)
        environ = {**os.environ, "WEFT_HOME": home}
        server = subprocess.Popen(
            [sys.executable, "-m", "weft", "serve"], env=environ, stderr=subprocess.PIPE, text=True
        )
        lines = server.stderr or ()
        try:
            address = next(line.split(" at ")[1].strip() for line in lines if "HTTP is open" in line)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
                )
                page = browser.new_page(viewport={"width": 1100, "height": 760})
                take(page, address)
                browser.close()
        finally:
            server.terminate()
            server.communicate()


def take(page: Page, address: str) -> None:
    """Walk through the sample, and take a picture of each page that the documentation shows."""
    page.goto(address)
    page.get_by_role("button", name="Explore a sample").click()
    page.get_by_role("heading", name="Sample: Ada plans a trip").wait_for()
    page.screenshot(path=PICTURES / "over-time.png")
    page.get_by_role("link", name="go on talking").click()
    page.locator("#log").evaluate("log => scrollTo(0, 0)")
    page.screenshot(path=PICTURES / "talk.png")
    page.get_by_role("link", name="What did it see?").nth(3).click()
    page.get_by_role("heading", name="What the model saw").wait_for()
    page.screenshot(path=PICTURES / "turn.png")
    page.goto(f"{address}/memory/block?label=notes&person=sample:ada")
    page.screenshot(path=PICTURES / "memory.png")
    page.goto(f"{address}/recipes/edit?name=weft")
    page.get_by_role("button", name="Look").click()
    page.locator("#built").wait_for()
    page.screenshot(path=PICTURES / "recipe.png")


if __name__ == "__main__":
    main()
