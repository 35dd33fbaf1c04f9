// Page behavior: live updates, countdowns, and forms that call the API.
// Pages are readable without it. Text from the server is set as text, never as markup, except for parts that the server
// rendered itself.
"use strict";

(() => {
  const root = document.documentElement;
  const skew = Number(root.dataset.now || Date.now()) - Date.now();
  const now = () => Date.now() + skew;
  const all = (selector, under = document) => [...under.querySelectorAll(selector)];

  // Poll interval for changes without an event, in milliseconds.
  const QUIETLY = 5000;

  // ---- time ----

  const pad = (n) => String(n).padStart(2, "0");

  function long(ms) {
    const s = Math.max(0, Math.ceil(ms / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${pad(s % 60)} s`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ${pad(Math.floor((s % 3600) / 60))} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  }

  function ago(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 5) return "just now";
    if (s < 60) return `${s} s ago`;
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ago`;
    return `${Math.floor(s / 86400)} d ago`;
  }

  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  // The server sends UTC timestamps; they are shown in the local time zone of the browser.
  const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });

  function inWords(at) {
    const zone = ZONE.formatToParts(at).find((part) => part.type === "timeZoneName");
    const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
    return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())} ${zone ? zone.value : ""}`.trim();
  }

  function local(under = document) {
    for (const it of all("time[datetime]", under)) {
      const at = new Date(it.getAttribute("datetime"));
      if (Number.isNaN(at.getTime())) continue;
      const exact = inWords(at);
      if (it.title) it.title = it.title.startsWith("since ") ? `since ${exact}` : exact;
      if ("clock" in it.dataset) say(it, exact);
    }
  }

  function tick() {
    for (const it of all("[data-ago]")) say(it, ago(now() - Number(it.dataset.ago)));
    for (const it of all("[data-since]")) say(it, long(now() - Number(it.dataset.since)));
    for (const it of all("[data-until]")) {
      const left = Number(it.dataset.until) - now();
      say(it, left > 0 ? `in ${long(left)}` : "now");
    }
  }

  // ---- announcements, also for screen readers ----

  function tell(text) {
    const news = document.getElementById("news");
    if (!news) return;
    const line = document.createElement("p");
    line.textContent = text;
    news.append(line);
    setTimeout(() => line.remove(), 6000);
  }

  // ---- dynamic parts of the page: all parts that are due are fetched in one request ----

  const due = new Set();
  let timer = 0;
  let restsUntil = 0;

  const byName = (part) => document.querySelector(`[data-part="${CSS.escape(part)}"]`);

  function partUrl(parts) {
    const url = new URL(location.href);
    url.hash = "";
    url.searchParams.set("part", parts);
    return url;
  }

  function later(part, ms = 250) {
    due.add(part);
    if (timer) return;
    timer = setTimeout(refresh, Math.max(ms, restsUntil - Date.now()));
  }

  async function refresh() {
    timer = 0;
    const busy = [...due].filter((part) => byName(part) && isInUse(byName(part)));
    const parts = [...due].filter((part) => byName(part) && !busy.includes(part));
    due.clear();
    busy.forEach((part) => later(part, 2000));
    if (parts.includes("words") && draft()) {
      parts.splice(parts.indexOf("words"), 1);
      describe(draft());
    }
    if (!parts.length) return;
    const began = Date.now();
    try {
      const answer = await fetch(partUrl(parts.join(",")), { headers: { Accept: "text/html" } });
      if (answer.ok) { patchAll(await answer.text()); upToDate(); }
      else if (answer.status === 401) { outdated(parts, "Your login has expired"); offerLogin(document.getElementById("live")); }
      else outdated(parts, `Out of date: the server returned ${answer.status}`);
    } catch {
      outdated(parts, "Out of date: cannot reach the server");
    }
    // Poll a slow server less often.
    restsUntil = Date.now() + Math.max(750, 5 * (Date.now() - began));
  }

  function patchAll(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    for (const fresh of [...template.content.children]) {
      const old = fresh.dataset.part && byName(fresh.dataset.part);
      if (old) patch(old, fresh);
    }
    local();
    tick();
    count();
  }

  // Returns true while the user types, chooses or selects text in the part: it must not be replaced then.
  function isInUse(part) {
    const active = document.activeElement;
    const writes = active && part.contains(active) && active.matches("input, textarea, select");
    return Boolean(writes) || !getSelection().isCollapsed && part.contains(getSelection().anchorNode);
  }

  // Returns the markup of a part without its relative times, which update on their own.
  function plain(part) {
    const copy = part.cloneNode(true);
    for (const time of all("time", copy)) { time.textContent = ""; time.removeAttribute("title"); }
    return copy.outerHTML;
  }

  // Parts as last rendered by the server: an unchanged part is kept, with the details that the user opened in it.
  const shown = new Map();

  function patch(old, fresh) {
    const says = plain(fresh);
    if (says === shown.get(fresh.dataset.part)) return;
    shown.set(fresh.dataset.part, says);
    const open = new Set(all("details[open][data-key]", old).map((one) => one.dataset.key));
    const shut = new Set(all("details:not([open])[data-key]", old).map((one) => one.dataset.key));
    for (const one of all("details[data-key]", fresh)) {
      if (open.has(one.dataset.key)) one.open = true;
      if (shut.has(one.dataset.key)) one.open = false;
    }
    const known = new Set(all("[data-key]", old).map((one) => one.dataset.key));
    for (const one of all("[data-key]:not(details)", fresh)) {
      if (known.size && !known.has(one.dataset.key)) one.classList.add("fresh");
    }
    const scrolled = new Map(all("[data-scroll]", old).map((one) => [one.dataset.scroll, one.scrollTop]));
    const focus = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceWith(fresh);
    for (const one of all("[data-scroll]", fresh)) one.scrollTop = scrolled.get(one.dataset.scroll) || 0;
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }

  // The scope of a part (data-about): everything, a run, a session or some events.
  function concerns(part, event) {
    const about = (part.dataset.about || "*").split(" ");
    return about.some((one) => one === "*" || one === event.run || one === event.session || one === event.event);
  }

  // Successful API calls emit no events, but they change costs and limits.
  function refreshQuiet() {
    if (document.hidden) return;
    for (const part of all("[data-part][data-quietly]")) later(part.dataset.part);
  }

  function refreshAll() {
    for (const part of all("[data-part]")) later(part.dataset.part, 50);
  }

  // Shows the number of pending requests in the window title.
  function count() {
    const open = document.querySelector("[data-open-questions]");
    if (!open) return;
    const n = Number(open.dataset.openQuestions);
    const bare = document.title.replace(/^\(\d+\) /, "");
    document.title = n ? `(${n}) ${bare}` : bare;
  }

  // ---- live events ----

  const EVENTS = (root.dataset.events || "").split(" ").filter(Boolean);
  let source = null;
  let wasLost = false;

  function state(name, text) {
    const live = document.getElementById("live");
    if (!live || live.dataset.state === name && live.dataset.text === text) return;
    live.dataset.state = name;
    live.dataset.text = live.textContent = text;
  }

  // True if the page content may be outdated although events arrive: the page is not shown as live then.
  let isOld = false;

  function outdated(parts, text) {
    isOld = true;
    state("lost", text);
    parts.forEach((part) => later(part, 5000));
  }

  function upToDate() {
    if (!isOld) return;
    isOld = false;
    if (source && source.readyState === EventSource.OPEN) state("live", "Live");
  }

  function heard(message) {
    let event;
    try { event = JSON.parse(message.data); } catch { return; }
    for (const part of all("[data-part]")) if (concerns(part, event)) later(part.dataset.part);
    if (event.event !== "recovery_escalated") return;
    notify(event);
    tell("A run needs your input: see the inbox.");
  }

  function listen() {
    if (!root.dataset.stream || source) return;
    source = new EventSource(root.dataset.stream);
    source.onopen = () => {
      if (!isOld) state("live", "Live");
      if (wasLost) { wasLost = false; refreshAll(); }
    };
    source.onerror = () => {
      wasLost = true;
      if (!isOld) state("lost", "Connection lost, reconnecting");
      // The browser does not reconnect a rejected stream.
      if (source.readyState === EventSource.CLOSED) { source = null; setTimeout(listen, 5000); }
    };
    source.onmessage = heard;
    for (const name of EVENTS) source.addEventListener(name, heard);
  }

  // Browsers allow only six connections per server across all windows, so hidden windows close theirs.
  // If notifications are allowed, the window that was visible last keeps its connection.
  const LISTENER = "unstuck-listener";
  const own = String(Math.random());

  function rest() {
    source?.close();
    source = null;
    wasLost = true;
  }

  function looked() {
    if (!document.hidden) return listen();
    if ("Notification" in window && Notification.permission === "granted") localStorage.setItem(LISTENER, own);
    else rest();
  }

  function passed(event) {
    if (event.key === LISTENER && event.newValue !== own && document.hidden) rest();
  }

  // ---- browser notifications, if the user allowed them ----

  function notify(event) {
    if (!("Notification" in window) || Notification.permission !== "granted" || document.hasFocus()) return;
    const note = new Notification("unstuck needs your input", { body: String((event.data || {}).reason || ""), tag: String(event.run || "") });
    note.onclick = () => { window.focus(); location.href = "/inbox"; };
  }

  function offerNotifications() {
    for (const button of all("[data-allow-notifications]")) {
      const show = () => { button.hidden = !("Notification" in window) || Notification.permission !== "default"; };
      show();
      button.addEventListener("click", async () => { await Notification.requestPermission(); show(); });
    }
  }

  // ---- forms ----

  function value(field) {
    const wanted = field.dataset.type;
    if (field.type === "checkbox" && wanted !== "item") return field.checked;
    const text = field.value;
    if (wanted === "number") return text.trim() === "" ? undefined : Number(text);
    if (wanted === "optional") return text.trim() === "" ? undefined : text;
    if (wanted === "raw") return JSON.parse(text);
    return text;
  }

  function body(form) {
    const said = form.dataset.base ? JSON.parse(form.dataset.base) : {};
    for (const rows of all("[data-rows]", form)) said[rows.dataset.rows] = {};
    for (const field of form.elements) {
      if (!field.name || field.disabled) continue;
      const row = field.closest("[data-own]");
      if (row) {
        const own = (said[row.dataset.own][row.dataset.of] ??= {});
        const one = value(field);
        if (one !== undefined) own[field.dataset.field] = one;
        continue;
      }
      if (field.dataset.type === "item") {
        said[field.name] = said[field.name] instanceof Array && said[field.name].mine ? said[field.name] : Object.assign([], { mine: true });
        if (field.checked) said[field.name].push(field.value);
        continue;
      }
      if (field.type === "radio" && !field.checked) continue;
      const one = value(field);
      if (one !== undefined) said[field.name] = one;
    }
    return said;
  }

  function formSays(form, text, ok) {
    const says = form.querySelector(".says");
    if (!says) return tell(text);
    says.className = ok ? "says is-ok" : "says is-bad";
    says.textContent = text;
  }

  // Offers to log in again after the session has expired; the form input is kept.
  function offerLogin(place) {
    if (!place || place.querySelector("a")) return;
    const link = document.createElement("a");
    link.href = loginUrl();
    link.textContent = "Log in";
    place.append(" ", link);
  }

  // Shows validation errors at their fields and returns the errors that have no field.
  function mark(form, errors) {
    for (const old of all(".wrong", form)) old.remove();
    for (const field of all("[aria-invalid]", form)) field.removeAttribute("aria-invalid");
    const left = [];
    for (const error of errors) {
      const field = form.querySelector(`[name="${CSS.escape(String(error.field))}"]`);
      if (!field || !field.id) { left.push(`${error.field}: ${error.reason}`); continue; }
      const line = document.createElement("p");
      line.className = "wrong";
      line.id = `${field.id}-wrong`;
      line.setAttribute("role", "alert");
      line.textContent = error.reason;
      field.after(line);
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-errormessage", line.id);
    }
    form.querySelector("[aria-invalid]")?.focus();
    return left;
  }

  async function refused(form, answer) {
    const copy = answer.clone();
    let errors = [];
    try { errors = (await copy.json()).errors || []; } catch { /* The response has no body beyond its status. */ }
    if (answer.status === 412 && form.dataset.method === "PUT") return beside(form);
    const left = mark(form, errors);
    if (left.length) return `Request rejected: ${left.join("; ")}`;
    return errors.length ? "Request rejected. See the fields above." : problem(answer);
  }

  // Edit conflict: shows the values saved by someone else next to the user's own; saving again overwrites them.
  async function beside(form) {
    const answer = await fetch(form.dataset.api, { headers: { Accept: "application/json" } });
    if (!answer.ok) return problem(answer);
    form.dataset.etag = answer.headers.get("ETag") || "";
    const [theirs, mine] = [await answer.json(), body(form)];
    const inOrder = (_, it) => it instanceof Object && !(it instanceof Array) ? Object.fromEntries(Object.entries(it).sort()) : it;
    const same = (one, two) => JSON.stringify(one ?? null, inOrder) === JSON.stringify(two ?? null, inOrder);
    // A policy's id and description change with its name.
    const other = Object.keys(mine).filter((name) => !["id", "description"].includes(name) && !same(mine[name], theirs[name]));
    const told = (name) => typeof theirs[name] === "object" ? JSON.stringify(theirs[name]) : String(theirs[name]);
    const left = mark(form, other.map((field) => ({ field, reason: `theirs: ${theirs[field] == null ? "empty" : told(field)}` })));
    return `Someone else saved changes in the meantime. Their values are shown next to yours${left.length ? `; ${left.join("; ")}` : ""}. Save again to overwrite theirs, or reload the page to use them.`;
  }

  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");

  async function problem(answer) {
    try {
      const said = await answer.json();
      return sentence(said.detail || said.title || `The server returned ${answer.status}.`);
    } catch {
      return `The server returned ${answer.status}.`;
    }
  }

  // Cookies are shared with every other server on the same host; this key from local storage is sent in addition.
  const KEY = "unstuck-key";

  function keyed(headers) {
    const kept = localStorage.getItem(KEY);
    return kept ? { ...headers, "X-Unstuck-Key": kept } : headers;
  }

  async function send(form, submitter) {
    const said = body(form);
    if (submitter && submitter.name) said[submitter.name] = submitter.value;
    const headers = keyed({ "Content-Type": "application/json", Accept: "application/json" });
    if (form.dataset.etag) headers["If-Match"] = form.dataset.etag;
    const answer = await fetch(form.dataset.api, { method: form.dataset.method || "POST", headers, body: JSON.stringify(said) });
    if (!answer.ok) throw Object.assign(new Error(await refused(form, answer)), { status: answer.status });
    mark(form, []);
    delete form.dataset.draft;
    if (answer.headers.get("ETag")) form.dataset.etag = answer.headers.get("ETag");
    if (form.dataset.keeps) localStorage.setItem(KEY, (await answer.json())[form.dataset.keeps]);
    if (form.dataset.forgets) localStorage.removeItem(KEY);
    const told = form.dataset.tell && (await answer.json())[form.dataset.tell];
    return told ? String(told) : "";
  }

  async function submit(event) {
    const form = event.target;
    if (!form.dataset.api) return;
    event.preventDefault();
    // Close the confirmation dialog.
    if (!form.closest("dialog")) event.submitter?.closest("dialog")?.close();
    const buttons = all("button", form).filter((one) => !one.disabled);
    buttons.forEach((one) => { one.disabled = true; });
    form.setAttribute("aria-busy", "true");
    try {
      const told = await send(form, event.submitter);
      const done = told || (event.submitter && event.submitter.dataset.done) || form.dataset.done || "Done.";
      form.closest("dialog")?.close();
      if (form.closest("dialog")) tell(done); else formSays(form, done, true);
      if (form.dataset.goto) location.assign(form.dataset.goto); else refreshAll();
    } catch (error) {
      formSays(form, error instanceof TypeError ? "Cannot reach the server. Nothing was sent." : error.message, false);
      if (error.status === 401 && location.pathname !== "/login") offerLogin(form.querySelector(".says"));
    } finally {
      form.removeAttribute("aria-busy");
      buttons.forEach((one) => { one.disabled = false; });
    }
  }

  // ---- dialogs: content is fetched on open ----

  // Placeholder content of each dialog while it loads.
  const waits = new Map();

  async function openDialog(button) {
    const dialog = document.getElementById(button.dataset.dialog);
    if (!dialog) return;
    dialog.showModal();
    const inside = dialog.querySelector("[data-load]");
    if (!inside) return;
    // Restore the placeholder: stale content would be replaced while the user interacts with it.
    if (!waits.has(inside)) waits.set(inside, inside.cloneNode(true));
    inside.replaceChildren(...waits.get(inside).cloneNode(true).childNodes);
    for (const it of all("[data-elapsed]", inside)) it.dataset.since = now();
    // Closing the dialog cancels what it waits for.
    const gone = new AbortController();
    dialog.addEventListener("close", () => gone.abort(), { once: true });
    try {
      const answer = inside.dataset.post
        ? await fetch(inside.dataset.post, { method: "POST", headers: keyed({ Accept: "text/html" }), signal: gone.signal })
        : await fetch(partUrl(inside.dataset.load), { headers: { Accept: "text/html" } });
      if (!(answer.headers.get("Content-Type") || "").startsWith("text/html")) throw new Error(await problem(answer));
      inside.innerHTML = await answer.text();
      local(inside);
      inside.querySelector("textarea, input, button")?.focus();
    } catch (error) {
      if (gone.signal.aborted) return;
      inside.textContent = error.message;
    }
  }

  function clicked(event) {
    const opener = event.target.closest("[data-dialog]");
    if (opener) return void openDialog(opener);
    const way = event.target.closest("[data-login]");
    if (way) return void way.setAttribute("href", loginUrl());
    const closer = event.target.closest("[data-close]");
    if (closer) return closer.closest("dialog")?.close();
    const filler = event.target.closest("[data-fill]");
    if (filler) return fill(filler);
    const adder = event.target.closest("[data-add]");
    if (adder) return add(adder);
    const remover = event.target.closest("[data-remove]");
    if (remover) remove(remover);
  }

  // ---- rows of a policy: overrides for single kinds and tools ----

  function addRow(form, table, of, values) {
    const place = form.querySelector(`[data-rows="${CSS.escape(table)}"]`);
    const row = document.getElementById("own-row").content.firstElementChild.cloneNode(true);
    row.dataset.own = table;
    row.dataset.of = of;
    say(row.querySelector("legend code"), of);
    say(row.querySelector("[data-remove] span"), ` the overrides for ${of}`);
    for (const field of all("[data-field]", row)) {
      field.name = field.id = field.previousElementSibling.htmlFor = `${table}.${of}.${field.dataset.field}`;
      field.value = values[field.dataset.field] ?? "";
    }
    place.append(row);
    return row;
  }

  function remove(button) {
    const form = button.closest("form");
    button.closest("[data-own]").remove();
    describe(form);
  }

  function add(button) {
    const [form, table, from] = [button.closest("form"), button.dataset.add, document.getElementById(button.dataset.from)];
    const of = from.value.trim();
    if (!of) return from.focus();
    const old = all(`[data-own="${CSS.escape(table)}"]`, form).find((row) => row.dataset.of === of);
    (old || addRow(form, table, of, {})).querySelector("input")?.focus();
  }

  // Fills the form from a policy template; nothing is sent.
  function fill(button) {
    const form = document.getElementById(button.dataset.form);
    if (!form) return;
    const values = JSON.parse(button.dataset.fill);
    for (const field of form.elements) {
      const given = values[field.name];
      if (!field.name || given === undefined) continue;
      if (field.dataset.type === "item") field.checked = given.includes(field.value);
      else if (field.type === "checkbox") field.checked = given;
      else field.value = given ?? "";
    }
    all("[data-own]", form).forEach((row) => row.remove());
    for (const table of ["kinds", "tools"]) {
      for (const [of, own] of Object.entries(values[table] || {})) addRow(form, table, of, own);
    }
    const { id, name, description } = values;
    form.dataset.base = JSON.stringify({ ...JSON.parse(form.dataset.base), id, name, description });
    formSays(form, "Form filled in. Not saved yet.", true);
    describe(form);
    form.querySelector("input, textarea, select")?.focus();
  }

  // Returns the login URL that leads back to this page.
  function loginUrl() {
    const here = location.pathname + location.search;
    return here === "/" ? "/login" : `/login?back=${encodeURIComponent(here)}`;
  }

  // Timer for the policy summary, which follows the form, saved or not.
  let describing = 0;

  // Returns the policy form if it has unsaved changes.
  function draft() {
    return document.querySelector("#policy[data-draft]");
  }

  function describe(form) {
    form.dataset.draft = "";
    clearTimeout(describing);
    describing = setTimeout(async () => {
      if (!draft()) return;
      try {
        const url = partUrl("words");
        url.searchParams.set("policy", JSON.stringify(body(form)));
        const answer = await fetch(url, { headers: { Accept: "text/html" } });
        const html = await answer.text();
        // Skip the draft summary if the form was saved in the meantime.
        if (answer.ok && draft()) patchAll(html);
      } catch {
        // Invalid input is reported on save.
      }
    }, 300);
  }

  // ---- login: the link contains a one-time code ----

  async function login() {
    const code = location.pathname === "/login" ? location.hash.slice(1) : "";
    if (!code) return;
    history.replaceState(null, "", location.pathname + location.search);
    const says = document.getElementById("login-says");
    says.textContent = "";
    try {
      const answer = await fetch("/api/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
      if (!answer.ok) throw new Error(await problem(answer));
      localStorage.setItem(KEY, (await answer.json()).key);
      location.replace(document.getElementById("login").dataset.goto);
    } catch (error) {
      says.className = "says is-bad";
      says.textContent = error instanceof TypeError ? "Cannot reach the server." : error.message;
    }
  }

  // ---- keyboard shortcuts: g and a letter opens a page ----

  const places = { n: "/", i: "/inbox", r: "/runs", f: "/failures", p: "/policies", s: "/settings" };
  let goes = false;

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    if (goes && places[event.key]) location.assign(places[event.key]);
    goes = event.key === "g";
  }

  document.addEventListener("submit", submit);
  document.addEventListener("click", clicked);
  document.addEventListener("input", (event) => { if (event.target.form?.id === "policy") describe(event.target.form); });
  document.addEventListener("keydown", key);
  document.addEventListener("visibilitychange", looked);
  addEventListener("hashchange", login);
  addEventListener("storage", passed);
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => { if (event.persisted) looked(); });
  root.classList.add("scripted");
  for (const part of all("[data-part]")) shown.set(part.dataset.part, plain(part));
  offerNotifications();
  local();
  tick();
  count();
  setInterval(tick, 1000);
  setInterval(refreshQuiet, QUIETLY);
  login().then(listen);
})();
