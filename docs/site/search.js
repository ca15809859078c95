// The search box asks the server's own OpenFeeder endpoint. Without that endpoint, it stays hidden.
const endpoint = document.currentScript.dataset.endpoint;
const form = document.querySelector("form[role=search]");
const results = document.getElementById("results");
const query = new URLSearchParams(location.search).get("q");

async function ask(parameters) {
  const response = await fetch(endpoint + parameters);
  if (!response.ok) throw new Error(response.status);
  return response.json();
}

function add(parent, name, properties) {
  parent.append(Object.assign(document.createElement(name), properties));
  return parent.lastChild;
}

function show({ items, chunks }) {
  form.hidden = false;
  if (!query) return;
  form.q.value = query;
  add(results, "h1", { textContent: (items.length ? "Results for “" : "Nothing found for “") + query + "”" });
  for (const { url, title } of items) {
    const passage = chunks.find((c) => new URL(c.url).pathname === new URL(url, location).pathname);
    add(add(results, "h3", {}), "a", { href: url, textContent: title });
    add(results, "p", { textContent: passage ? passage.text.slice(0, 220) + "…" : "" });
  }
  results.hidden = false;
}

if (location.protocol.startsWith("http")) {
  ask(query ? "?limit=10&q=" + encodeURIComponent(query) : "?limit=1").then(show, () => {});
}
