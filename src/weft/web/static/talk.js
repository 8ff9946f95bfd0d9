"use strict";
// The chat: sends a message, and shows the answer as it comes.
(() => {
  const form = document.getElementById("say");
  const log = document.getElementById("log");
  const sidebar = document.querySelector(".sidebar");
  if (window.matchMedia("(max-width: 48rem)").matches) sidebar.open = false;
  log.lastElementChild.scrollIntoView();
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
        started: () => {},
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
        card.append(make("p", "dim", agrees ? "You agreed." : "You refused."));
        await weft.send("/talk/answer", { id: event.id, agrees });
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
      const seen = make("p", "seen");
      if (event.turn) {
        const link = make("a", "", "What did it see?");
        link.href = `/turns/${event.turn}`;
        seen.append(link);
        add(seen);
      }
      if (event.session && log.dataset.session !== event.session) {
        log.dataset.session = form.elements.session.value = event.session;
        history.replaceState(null, "", `/talk/${event.session}`);
      }
    }
    fail(sentence) {
      this.waiting.remove();
      const problem = make("p", "alert", sentence);
      problem.setAttribute("role", "alert");
      add(problem);
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
    names.textContent = "";
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
      answer.fail(error.name === "AbortError" ? "Stopped." : error.message);
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
  attach.addEventListener("change", () => {
    files = [...files, ...attach.files];
    attach.value = "";
    names.textContent = files.length ? `Attached: ${files.map((file) => file.name).join(", ")}` : "";
  });
  document.querySelectorAll(".script-only").forEach((one) => one.classList.add("has-script"));
  if (!log.querySelector(".said")) text.focus();
})();
