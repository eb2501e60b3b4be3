(() => {
  "use strict";
  document.documentElement.classList.add("js");

  const keyOf = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : Number(cell.dataset.sort);
  };
  const compare = (one, other) => {
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return typeof one === "number" ? one - other : one.localeCompare(other);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const sign = down ? -1 : 1;
        const rows = [...body.rows].sort(
          (one, other) => sign * compare(keyOf(one, place), keyOf(other, place)),
        );
        body.append(...rows);
      });
    });
  }

  for (const filters of document.querySelectorAll(".filters[data-for]")) {
    const body = document.getElementById(filters.dataset.for).tBodies[0];
    const selects = [...filters.querySelectorAll("select")];
    const apply = () => {
      for (const row of body.rows) {
        row.hidden = selects.some(
          (one) => one.value && row.cells[Number(one.dataset.place)].textContent.trim() !== one.value,
        );
      }
    };
    selects.forEach((one) => one.addEventListener("change", apply));
  }

  const worst = [...document.querySelectorAll("details.worst")];
  if (worst.length) {
    const [dataset, ranker, order, words, count, list] = [
      "dataset", "ranker", "order", "words", "count", "list",
    ].map((name) => document.getElementById(`worst-${name}`));
    const rankOf = (one) => (one.dataset.rank ? Number(one.dataset.rank) : Infinity);
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const one of worst) {
        const text = wanted.length ? one.textContent.toLowerCase() : "";
        one.hidden =
          (dataset.value && one.dataset.dataset !== dataset.value) ||
          (ranker.value && one.dataset.ranker !== ranker.value) ||
          wanted.some((word) => !text.includes(word));
        shown += one.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${worst.length}`;
    };
    dataset.addEventListener("change", apply);
    ranker.addEventListener("change", apply);
    words.addEventListener("input", apply);
    order.addEventListener("change", () => {
      const byRank = (one, other) => rankOf(other) - rankOf(one) || 0;
      list.append(...(order.value === "rank" ? [...worst].sort(byRank) : worst));
    });
  }

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
