/* Asks the Hub what a start would do: while one chooses, and when the Hub tells that something has changed. */
(() => {
  'use strict';
  const root = document.querySelector('.pai-form');
  const form = root && root.closest('form');
  const page = window.jhdata;
  if (!form || !page || !window.fetch) {
    return;
  }

  /* ms from a key stroke to the question */
  const AFTER_TYPING = 250;
  /* ms between two questions while nothing is chosen: where the Hub does not tell of changes; where it does, a
     time that is told goes on, and an administrator's hours begin and end */
  const UNTOLD = 8000;
  const TOLD_WITH_TIME = 60000;
  const TOLD = 300000;
  /* ms within which all open forms ask after a change, not all at once; and until a refused stream is tried again */
  const SPREAD = 200;
  const AGAIN = 60000;
  const COLOURS = { now: 'success', later: 'warning', never: 'danger', wrong: 'danger', unknown: 'secondary' };

  const url = `${page.base_url}api/pai/choosing/${root.dataset.paiAddress}`;
  const changesUrl = `${page.base_url}api/pai/changes/${root.dataset.paiAddress.split('/')[0]}?_xsrf=${page.xsrf_token}`;
  const find = name => root.querySelector(`[data-pai-${name}]`);
  const box = root.querySelector('.pai-answer');
  const heading = document.title;
  let timer = 0;
  let due = 0;
  let question = null;
  let changes = null;
  let comesAgain = 0;
  let told = false;
  let between = TOLD;

  /* What is said once is not said again: a screen reader reads every change. */
  const say = (element, text) => {
    if (element.textContent !== text) {
      element.textContent = text;
    }
    element.hidden = !text;
  };

  const fieldsOf = name => {
    const all = [...root.querySelectorAll(`[data-pai-field="${name}"]`)];
    return all.filter(field => field.offsetParent !== null || !field.closest('.pai-profile'));
  };

  const takeElsewhere = virtualCluster => {
    for (const field of fieldsOf('virtual_cluster')) {
      field.value = virtualCluster;
      field.focus();
    }
    ask();
  };

  const showElsewhere = offers => {
    const place = find('elsewhere');
    const shown = [...place.children].map(button => button.textContent).join('\n');
    if (shown === offers.map(offer => offer.text).join('\n')) {
      return;
    }
    place.replaceChildren(
      ...offers.map(offer => {
        const button = document.createElement('button');
        button.type = 'button';
        button.className = 'btn btn-sm btn-primary';
        button.textContent = offer.text;
        button.addEventListener('click', () => takeElsewhere(offer.virtual_cluster));
        return button;
      })
    );
    place.hidden = offers.length === 0;
  };

  const showProblems = problems => {
    const list = find('problems');
    const texts = problems.map(problem => problem.message);
    if ([...list.children].map(item => item.textContent).join('\n') !== texts.join('\n')) {
      list.replaceChildren(
        ...texts.map(text => {
          const item = document.createElement('li');
          item.textContent = text;
          return item;
        })
      );
    }
    list.hidden = texts.length === 0;
    const wrong = new Set(problems.map(problem => problem.option));
    for (const field of root.querySelectorAll('[data-pai-field]')) {
      if (wrong.has(field.dataset.paiField) && fieldsOf(field.dataset.paiField).includes(field)) {
        field.setAttribute('aria-invalid', 'true');
      } else {
        field.removeAttribute('aria-invalid');
      }
    }
  };

  const showFree = free => {
    for (const note of root.querySelectorAll('[data-pai-free]')) {
      const text = free[note.dataset.paiFree];
      if (text) {
        say(note, text);
      }
    }
    for (const [field, texts] of [
      ['gpu_type', free.gpu_types],
      ['virtual_cluster', free.virtual_clusters]
    ]) {
      for (const option of root.querySelectorAll(`[data-pai-field="${field}"] option`)) {
        const text = texts && texts[option.value];
        if (text) {
          const marked = text.replace(option.value, name => name + (option.dataset.paiMark || ''));
          say(option, marked + (option.dataset.paiSuffix || ''));
        }
      }
    }
  };

  const colour = fits => {
    box.className = `pai-answer alert alert-${COLOURS[fits] || 'secondary'}`;
    box.dataset.paiFits = fits;
    box.hidden = false;
  };

  const show = answer => {
    colour(answer.fits);
    say(find('sentence'), answer.sentence);
    say(find('reason'), answer.reason);
    say(find('advice'), answer.advice);
    say(find('ends'), answer.ends);
    showProblems(answer.problems);
    showElsewhere(answer.elsewhere);
    showFree(answer.free);
    between = answer.startsWithin ? TOLD_WITH_TIME : TOLD;
    if (answer.title) {
      say(find('title'), answer.title);
      nameThePage();
    }
  };

  const nameThePage = () => {
    document.title = `${find('title').textContent} – ${heading}`;
  };

  const later = wait => {
    window.clearTimeout(timer);
    due = Date.now() + wait;
    timer = document.visibilityState === 'visible' ? window.setTimeout(ask, wait) : 0;
  };

  /* What was changed while a question was under way is asked about no later. */
  const soon = wait => {
    if (!timer || Date.now() + wait < due) {
      later(wait);
    }
  };

  async function ask() {
    if (question) {
      question.abort();
    }
    window.clearTimeout(timer);
    timer = 0;
    const own = (question = new AbortController());
    const fields = {};
    for (const [name, value] of new FormData(form)) {
      if (name !== '_xsrf') {
        (fields[name] = fields[name] || []).push(String(value));
      }
    }
    let failed = false;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-XSRFToken': page.xsrf_token },
        body: JSON.stringify({ form: fields }),
        signal: own.signal
      });
      if (response.status === 404) {
        return; /* this Hub does not answer such questions */
      }
      if (!response.ok) {
        throw new Error(response.statusText);
      }
      show(await response.json());
    } catch (error) {
      if (own.signal.aborted) {
        return;
      }
      colour('unknown');
      say(find('sentence'), root.dataset.paiLost);
      for (const name of ['reason', 'advice', 'ends', 'problems']) {
        find(name).hidden = true;
      }
      showElsewhere([]);
      failed = true;
    }
    if (question === own) {
      soon(failed ? 3 * UNTOLD : told ? between : UNTOLD);
    }
  }

  /* A stream on which the Hub tells that something has changed; without it the form asks every few seconds. */
  const listen = () => {
    window.clearTimeout(comesAgain);
    if (changes || !window.EventSource || document.visibilityState !== 'visible') {
      return;
    }
    const own = (changes = new EventSource(changesUrl));
    own.onopen = () => {
      told = true;
      /* what has changed before was not told */
      void ask();
    };
    own.onmessage = () => soon(SPREAD * Math.random());
    own.onerror = () => {
      told = false;
      soon(UNTOLD);
      if (own.readyState === EventSource.CLOSED && changes === own) {
        changes = null;
        comesAgain = window.setTimeout(listen, AGAIN);
      }
    };
  };

  const stopListening = () => {
    window.clearTimeout(comesAgain);
    changes?.close();
    changes = null;
    told = false;
  };

  root.addEventListener('input', () => later(AFTER_TYPING));
  root.addEventListener('change', () => later(AFTER_TYPING));
  form.addEventListener('submit', () => {
    window.clearTimeout(timer);
    question?.abort();
    stopListening();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') {
      void ask();
      listen();
    } else {
      window.clearTimeout(timer);
      question?.abort();
      stopListening();
    }
  });

  /* the page came with an answer; only where it is no good news there may be buttons to show */
  if (find('title').textContent) {
    nameThePage();
  }
  if (box.dataset.paiFits === 'now') {
    colour('now');
    later(UNTOLD);
  } else {
    void ask();
  }
  listen();
})();
