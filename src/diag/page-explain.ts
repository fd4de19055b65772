/** The form that asks what would become of a request. */
import { html, type Markup } from '#http';

/** `action`: the endpoint, relative to the page; `given`: what it was filled in with. */
export function explainForm(action: string, given: URLSearchParams): Markup {
  const headers = given.getAll('header').filter(Boolean);
  return html`<form class="explain" method="get" action="${action}">
${field('Method', 'method', given.get('method') ?? 'GET', 'GET')}
${field('Path or URL', 'url', given.get('url') ?? '', '/v1/hotels?city=Paris', 'wide')}
${field('User', 'user', given.get('user') ?? '', 'nobody')}
${field('From address', 'from', given.get('from') ?? '', '127.0.0.1')}
${[...headers, ...emptyHeaders].map((value, index) => field(`Header ${index + 1}`, 'header', value, 'Name: value'))}
<button>Explain</button>
</form>`;
}

const emptyHeaders = ['', ''];

function field(label: string, name: string, value: string, example: string, look?: string): Markup {
  return html`<label${look && html` class="${look}"`}>${label}<input name="${name}" value="${value}" placeholder="${example}" autocomplete="off" autocapitalize="off" spellcheck="false"></label>`;
}
