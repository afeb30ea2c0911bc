// The administrators' page: filters as one types, shows times of this browser's clock, and stays fresh while it is seen.

const EVERY = 15000;

function showTimes() {
  for (const time of document.querySelectorAll('time')) {
    time.title = new Date(time.dateTime).toLocaleString(document.documentElement.lang);
  }
}

function filter() {
  const wanted = document.querySelector('.filter input').value.trim().toLowerCase();
  for (const row of document.querySelectorAll('tr[data-names]')) {
    row.hidden = !row.dataset.names.toLowerCase().includes(wanted);
  }
}

/** Nobody types, or has opened a form, in what would be replaced. */
function isAtRest() {
  const focused = document.activeElement;
  const busy = focused && focused.closest('section') && focused.matches('input, button, summary');
  return !document.hidden && !busy && !document.querySelector('details[open]');
}

async function refresh() {
  if (!isAtRest()) {
    return;
  }
  const answer = await fetch(location.pathname, { headers: { Accept: 'text/html' }, redirect: 'error' });
  if (!answer.ok) {
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const sections = document.querySelectorAll('section');
  const newer = fresh.querySelectorAll('section');
  if (sections.length === newer.length && isAtRest()) {
    sections.forEach((section, number) => {
      const left = section.querySelector('.scroll')?.scrollLeft ?? 0;
      section.replaceChildren(...newer[number].childNodes);
      section.querySelector('.scroll')?.scrollTo({ left });
    });
    showTimes();
    filter();
  }
}

/** On a narrow screen the field that was opened comes into sight, ready to be written in. */
document.addEventListener(
  'toggle',
  (event) => {
    if (event.target.matches('details.action[open]')) {
      event.target.querySelector('input[name=text]').focus();
    }
  },
  true,
);

showTimes();
if (document.querySelector('.filter')) {
  document.querySelector('.filter input').addEventListener('input', filter);
  setInterval(() => void refresh().catch(() => {}), EVERY);
}
