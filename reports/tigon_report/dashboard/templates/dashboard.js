// SPDX-License-Identifier: Apache-2.0
// What the dashboard's pages do beyond showing: theme, sorting, filters, deep links, tool tips, comparing two runs, CSV of a
// table. A classic script that reads the page and fetches nothing; without it every page still says everything it knows.
"use strict";
(function () {
  const all = (query, root) => Array.from((root || document).querySelectorAll(query));
  const byId = (id) => document.getElementById(id);

  // ---- theme: the system's, until the button says otherwise -------------------------------------
  const root = document.documentElement;
  function stored(value) {
    try {
      if (value) localStorage.setItem("tigon-theme", value);
      return localStorage.getItem("tigon-theme");
    } catch (error) {
      return null;  // a page opened from a file may have no storage
    }
  }
  if (stored()) root.dataset.theme = stored();
  const themeButton = byId("theme");
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    stored(root.dataset.theme);
  });

  // ---- what the address says: #run_id marks a row; #q=text&sort=2&a=..&b=.. sets filters ---------
  function state() {
    const hash = decodeURIComponent(location.hash.slice(1));
    return hash.includes("=") ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams();
  }
  function remember(name, value) {
    const now = state();
    if (value) now.set(name, value); else now.delete(name);
    history.replaceState(null, "", now.toString() ? "#" + now : location.pathname + location.search);
  }

  // ---- sorting ------------------------------------------------------------------------------------
  const bodyRows = (table) => all("tr", table).filter((row) => row.querySelector("td"));
  function cellValue(row, column) {
    const cell = row.cells[column];
    const number = cell && cell.dataset.v !== undefined ? cell.dataset.v : null;
    return number !== null ? (number === "" ? -Infinity : Number(number)) : cell ? cell.textContent.trim() : "";
  }
  function sortBy(table, column, descending) {
    const rows = bodyRows(table).map((row, place) => ({ row, place, value: cellValue(row, column) }));
    rows.sort((x, y) => {
      const order = typeof x.value === "number" && typeof y.value === "number" ? x.value - y.value
        : String(x.value).localeCompare(String(y.value), undefined, { numeric: true });
      return (descending ? -order : order) || x.place - y.place;
    });
    const parent = bodyRows(table)[0].parentNode;
    rows.forEach((entry) => parent.appendChild(entry.row));
    all("th", table).forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }
  all("table.sortable").forEach((table) => {
    all("th", table).forEach((head, column) => {
      head.classList.add("ready");
      head.tabIndex = 0;
      const act = () => {
        if (!bodyRows(table).length) return;
        const ascending = head.getAttribute("aria-sort") === "ascending";
        const first = !head.hasAttribute("aria-sort") && head.classList.contains("n");
        sortBy(table, column, first || ascending);
        if (table.id) remember("sort", table.id + "." + column + (first || ascending ? "d" : "a"));
      };
      head.addEventListener("click", act);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") act(); });
    });
  });

  // ---- filters: every word must be in the row; a leading - means it must not ----------------------
  function applyFilter(input) {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const table = byId(input.dataset.filter);
    if (!table) return;
    let shown = 0;
    const rows = bodyRows(table);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => word[0] === "-" && word.length > 1 ? !text.includes(word.slice(1)) : text.includes(word));
      shown += row.hidden ? 0 : 1;
    });
    all('[data-count="' + input.dataset.filter + '"]').forEach((count) => { count.textContent = shown + " of " + rows.length; });
  }
  all(".filter").forEach((part) => { part.hidden = false; });
  all("input[data-filter]").forEach((input) => {
    input.addEventListener("input", () => { applyFilter(input); remember("q", input.value); });
  });

  // ---- CSV of the rows that a filter leaves -------------------------------------------------------
  all("button[data-csv]").forEach((button) => button.addEventListener("click", () => {
    const table = byId(button.dataset.csv);
    const quote = (cell) => '"' + (cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim()).replace(/"/g, '""') + '"';
    const lines = all("tr", table).filter((row) => !row.hidden).map((row) => Array.from(row.cells).map(quote).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = button.dataset.csv + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }));

  // ---- tool tips of linked points: the row they lead to -------------------------------------------
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.appendChild(tip);
  function describe(link) {
    const target = link.getAttribute("href") || "";
    const row = target[0] === "#" ? byId(decodeURIComponent(target.slice(1))) : null;
    if (row && row.cells) return Array.from(row.cells).slice(0, 6).filter((cell) => !cell.querySelector("details")).map((cell) => cell.textContent.trim()).join("\n");
    return link.dataset.tip || "";
  }
  all("figure svg").forEach((svg) => {
    svg.addEventListener("mousemove", (event) => {
      const link = event.target.closest("a");
      tip.textContent = link ? describe(link) : "";
      tip.hidden = !tip.textContent;
      tip.style.left = Math.min(event.clientX + 14, innerWidth - 260) + "px";
      tip.style.top = Math.min(event.clientY + 14, innerHeight - 120) + "px";
    });
    svg.addEventListener("mouseleave", () => { tip.hidden = true; });
  });

  // ---- comparing any two runs ---------------------------------------------------------------------
  const show = (seconds) => {
    const steps = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
    const step = steps.find(([size]) => seconds >= size) || [1e-9, "ns"];
    return (seconds / step[0]).toPrecision(4) + " " + step[1];
  };
  function cell(row, text, value, kind) {
    const made = row.insertCell();
    made.textContent = text;
    if (value !== undefined) made.dataset.v = value;
    if (kind) made.className = kind;
    return made;
  }
  function compareRows(data, a, b) {
    return data.cases.map((one, index) => {
      const [slug, name, basis, device, anchor, band] = one;
      const before = data.times[a][index], after = data.times[b][index];
      if (!before && !after) return null;
      const found = { slug, name, basis, device, band, before, after, change: null, says: before ? "missing after" : "missing before" };
      if (before && after) {
        const rates = [data.runs[a].ceilings[anchor], data.runs[b].ceilings[anchor]];
        found.change = after / before - 1;
        found.anchored = rates[0] && rates[1] ? (after * rates[1]) / (before * rates[0]) - 1 : found.change;
        found.says = Math.abs(found.anchored) <= band ? "within noise" : found.anchored > 0 ? "slower" : "faster";
      }
      return found;
    }).filter(Boolean).sort((x, y) => (x.change === null ? -1 : 0) - (y.change === null ? -1 : 0) || (y.anchored || 0) - (x.anchored || 0));
  }
  function compare(data) {
    const a = byId("compare-a").value, b = byId("compare-b").value;
    const note = byId("compare-note"), table = byId("compare"), first = data.runs[a], second = data.runs[b];
    note.hidden = first.device === second.device;
    note.textContent = note.hidden ? "" : "These runs are of different devices (" + first.device + ", " + second.device + "); compare runs of one kind of device.";
    bodyRows(table).forEach((row) => row.remove());
    all("th", table).forEach((head) => head.removeAttribute("aria-sort"));
    byId("compare-what").textContent = first.text + " → " + second.text;
    if (!note.hidden) return;
    compareRows(data, a, b).forEach((found) => {
      const row = (table.tBodies[0] || table).insertRow();
      const link = document.createElement("a");
      link.href = "case/" + found.slug + ".html";
      link.textContent = found.name;
      row.insertCell().appendChild(link);
      cell(row, found.basis);
      cell(row, found.before ? show(found.before) : "–", found.before || "", "n");
      cell(row, found.after ? show(found.after) : "–", found.after || "", "n");
      ["change", "anchored"].forEach((kind) => {
        const value = found.change === null ? 9 : found[kind];
        const text = found.change === null ? "–" : (value < 0 ? "" : "+") + (100 * value).toFixed(1) + " %";
        cell(row, text, value, found.change === null ? "n" : value > found.band ? "n worse" : value < -found.band ? "n better" : "n");
      });
      cell(row, "±" + (100 * found.band).toFixed(1) + " %", found.band, "n");
      cell(row, found.says);
    });
    all("input[data-filter]").forEach(applyFilter);
  }
  window.tigonCompare = function (data) {
    const now = state(), place = (id, other) => { const found = data.runs.findIndex((run) => run.id === id); return found < 0 ? other : found; };
    ["a", "b"].forEach((side) => {
      const select = byId("compare-" + side);
      data.runs.forEach((run, index) => select.add(new Option(run.text, index)));
      select.value = place(now.get(side), side === "a" ? data.before : data.after);
      select.addEventListener("change", () => { compare(data); remember(side, data.runs[select.value].id); });
    });
    byId("compare-swap").addEventListener("click", () => {
      const a = byId("compare-a"), b = byId("compare-b");
      [a.value, b.value] = [b.value, a.value];
      remember("a", data.runs[a.value].id);
      remember("b", data.runs[b.value].id);
      compare(data);
    });
    if (now.get("a") || now.get("b")) compare(data);
  };

  // ---- open the page as its address says ----------------------------------------------------------
  function follow() {
    const now = state(), sort = /^(.+)\.(\d+)([ad])$/.exec(now.get("sort") || "");
    if (sort && byId(sort[1]) && bodyRows(byId(sort[1])).length) sortBy(byId(sort[1]), Number(sort[2]), sort[3] === "d");
    all("input[data-filter]").forEach((input) => { input.value = now.get("q") || ""; applyFilter(input); });
    const target = !now.toString() && location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (target) {
      for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
      all("details", target).forEach((part) => { part.open = true; });
    }
  }
  addEventListener("hashchange", follow);
  follow();
})();
