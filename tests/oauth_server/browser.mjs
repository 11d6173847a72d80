// A person with a browser, for tests: opens an address, fills in every form with what a person would, and prints the last page.
//
//     node browser.mjs URL [USER_CODE]
//
// Ends with 1 where a page answers an error, or where forms do not come to an end.
const [, , start, userCode] = process.argv;
const jars = new Map();

/** Gets a page, through redirects, with the cookies of each host. */
async function open(url, form) {
  for (let hop = 0; hop < 20; hop += 1) {
    const jar = jars.get(new URL(url).host) ?? new Map();
    jars.set(new URL(url).host, jar);
    const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
    const answer = await fetch(url, { method: form ? 'POST' : 'GET', body: form, headers, redirect: 'manual' });
    for (const cookie of answer.headers.getSetCookie()) {
      const [name, ...value] = cookie.split(';')[0].split('=');
      jar.set(name, value.join('='));
    }
    const next = answer.headers.get('location');
    if (!next) return { url, status: answer.status, text: await answer.text() };
    [url, form] = [new URL(next, url).href, undefined];
  }
  throw new Error(`${url} redirects for ever`);
}

function attribute(tag, name) {
  return new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1].replaceAll('&amp;', '&');
}

/** The page's form as a person would send it; undefined without one. */
function filled({ url, text }) {
  const form = /<form[\s\S]*?<\/form>/.exec(text)?.[0];
  if (!form) return undefined;
  const fields = new URLSearchParams();
  for (const [input] of form.matchAll(/<input[^>]*>/g)) {
    const name = attribute(input, 'name');
    const typed = { login: 'ann', password: 'secret', user_code: userCode }[name];
    if (name) fields.set(name, attribute(input, 'value') || typed || '');
  }
  return { to: new URL(attribute(form, 'action') ?? url, url).href, fields };
}

let page = await open(start);
for (let pages = 0; pages < 10; pages += 1) {
  const form = filled(page);
  if (page.status >= 400 || !form) {
    console.log(page.text);
    process.exit(page.status >= 400 ? 1 : 0);
  }
  page = await open(form.to, form.fields);
}
process.exit(1);
