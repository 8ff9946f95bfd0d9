"use strict";
// The chat: sends a message, and shows the answer as it comes.
(() => {
  const form = document.getElementById("say");
  const log = document.getElementById("log");
  const sidebar = document.querySelector(".sidebar");
  if (window.matchMedia("(max-width: 48rem)").matches) sidebar.open = false;
  if (!location.hash.startsWith("#message-")) log.lastElementChild.scrollIntoView();
  if (!form) return;
  const text = form.elements.text;
  const stop = document.getElementById("stop");
  const attach = document.getElementById("attach");
  const names = document.getElementById("files");
  let files = [];
  let running = null;

  const make = (name, css, words) => {
    const element = document.createElement(name);
    if (css) element.className = css;
    if (words !== undefined) element.textContent = words;
    return element;
  };
  const add = (element) => {
    log.insertBefore(element, document.getElementById("end"));
    element.scrollIntoView({ block: "nearest" });
    return element;
  };
  const said = (who, css) => {
    const article = make("article", `said ${css}`);
    article.append(make("h2", "hidden", who));
    const words = make("div", "words plain");
    article.append(words);
    return [article, words];
  };
  const unfolding = (summary, body) => {
    const details = make("details", "call");
    details.append(make("summary", "", summary), make("pre", "text", body));
    return add(details);
  };
  const button = (words, css, work) => {
    const one = make("button", css, words);
    one.type = "button";
    one.addEventListener("click", work);
    return one;
  };

  class Answer {
    constructor() {
      this.calls = new Map();
      this.questions = new Map();
      this.waiting = add(make("p", "dim waiting", "…"));
    }
    words() {
      if (!this.place) {
        const [article, words] = said("Weft", "agent");
        this.place = words;
        add(article);
      }
      return this.place;
    }
    take(event) {
      const shows = {
        started: () => this.started(event),
        reading: () => (this.waiting.textContent = `reading ${event.done} of ${event.total} tokens`),
        text: () => {
          this.waiting.hidden = true;
          this.words().append(event.text);
        },
        call: () => {
          this.place = null;
          this.calls.set(event.id, unfolding(`→ ${event.name} …`, event.arguments));
        },
        result: () => {
          const call = this.calls.get(event.id);
          if (!call) return;
          const summary = call.querySelector("summary");
          summary.textContent = summary.textContent.replace(/ …$/, event.failed ? " ✗" : " ✓");
          call.append(make("pre", "text", event.text));
        },
        question: () => this.ask(event),
        answered: () => this.questions.get(event.id)?.querySelectorAll("button").forEach((one) => (one.disabled = true)),
        done: () => this.done(event),
        error: () => this.fail(event.text),
      };
      shows[event.type]?.();
    }
    ask(event) {
      const card = make("div", "card question");
      card.setAttribute("role", "alertdialog");
      card.setAttribute("aria-label", "The assistant asks for your consent");
      card.append(make("pre", "text", event.text));
      const answer = (agrees) => async () => {
        card.querySelectorAll("button").forEach((one) => (one.disabled = true));
        const words = agrees ? "You agreed." : "You refused.";
        let taken = false;
        try {
          taken = (await (await weft.send("/talk/answer", { id: event.id, agrees })).json()).taken;
        } catch (error) {
          return card.append(make("p", "alert", error.message));
        }
        card.append(make("p", "dim", taken ? words : "This question was no longer waiting for an answer."));
      };
      const yes = button("Agree", "", answer(true));
      card.append(yes, " ", button("Refuse", "danger", answer(false)));
      this.questions.set(event.id, card);
      add(card);
      yes.focus();
    }
    done(event) {
      this.waiting.remove();
      if (event.html) {
        const words = this.words();
        words.classList.remove("plain");
        words.replaceChildren(...new DOMParser().parseFromString(event.html, "text/html").body.childNodes);
      }
      if (event.notice) add(make("p", "notice", event.notice));
      this.seen(event.turn);
      this.goOnIn(event.session);
    }
    // The conversation is known from the start: one that fails or is stopped goes on in the same place.
    started(event) {
      this.turn = event.turn;
      this.goOnIn(event.session);
    }
    goOnIn(session) {
      if (!session || log.dataset.session === session) return;
      log.dataset.session = form.elements.session.value = session;
      history.replaceState(null, "", `/talk/${session}`);
    }
    seen(turn) {
      if (!turn) return;
      const seen = make("p", "seen");
      const link = make("a", "", "What did it see?");
      link.href = `/turns/${turn}`;
      seen.append(link);
      add(seen);
    }
    fail(sentence) {
      this.waiting.remove();
      const problem = make("p", "alert", sentence);
      problem.setAttribute("role", "alert");
      add(problem);
      this.seen(this.turn);
    }
  }

  const asBase64 = (file) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve({ name: file.name, data: reader.result.split(",", 2)[1] || "" });
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });

  const say = async (words) => {
    const sent = files;
    files = [];
    showFiles();
    const [article, place] = said("You", "user");
    place.textContent = words + sent.map((file) => `\n[${file.name}]`).join("");
    add(article);
    const answer = new Answer();
    running = new AbortController();
    stop.hidden = false;
    try {
      const response = await fetch("/talk/say", {
        method: "POST",
        signal: running.signal,
        headers: { "content-type": "application/json", "x-weft-proof": weft.proof },
        body: JSON.stringify({
          text: words,
          session: form.elements.session.value,
          files: await Promise.all(sent.map(asBase64)),
        }),
      });
      if (!response.ok) throw new Error(await response.text());
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest += value;
        const events = rest.split("\n\n");
        rest = events.pop();
        for (const event of events) answer.take(JSON.parse(event.slice(6)));
      }
    } catch (error) {
      if (error.name === "AbortError") answer.fail("Stopped.");
      else if (answer.turn) answer.fail(`The answer broke off: ${error.message}. Load the page again to see what was kept.`);
      else {
        answer.fail(`Your message was not sent: ${error.message}`);
        if (!text.value) text.value = words;
        files = [...sent, ...files];
        showFiles();
      }
    } finally {
      running = null;
      stop.hidden = true;
      text.focus();
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.value;
    if (!words.trim() || running) return;
    text.value = "";
    say(words);
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  stop.addEventListener("click", () => running?.abort());
  const showFiles = () => {
    names.textContent = files.length ? `Attached: ${files.map((file) => file.name).join(", ")} ` : "";
    if (files.length) names.append(button("Remove", "quiet", () => ((files = []), showFiles())));
  };
  attach.addEventListener("change", () => {
    files = [...files, ...attach.files];
    attach.value = "";
    showFiles();
  });
  document.querySelectorAll(".script-only").forEach((one) => one.classList.add("has-script"));
  if (!log.querySelector(".said")) text.focus();
})();
