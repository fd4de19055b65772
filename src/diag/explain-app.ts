/** What would become of a request, as an endpoint behind the auth service: it asks nobody, and changes nothing. */
import type { Explain } from '#gateway';
import { createRepresentations, htmlFormatter, represent } from '#http';
import { type Endpoint, isRead, root } from './diag-app.ts';
import { explanationFormatters } from './explain-page.ts';
import { readQuestion } from './explain-question.ts';

/** `/gateway/v0/explain?method=GET&url=/v1/hotels&header=Name:%20value&user=ann`. Without a query, a browser gets the form. */
export function createExplanations(explain: Explain): Endpoint {
  const representations = createRepresentations(explanationFormatters);
  const prefix = `${root}/explain`;
  return {
    name: 'explain',
    prefix,
    rewrite: '',
    authenticated: true,
    async run(ctx) {
      if (!isRead(ctx, prefix)) return;
      const formatter = representations.choose(ctx.req.headers.accept);
      const isPage = formatter.type === htmlFormatter.type;
      const { search } = ctx;
      const explanation = isPage && search === '' ? undefined : explain(readQuestion(search));
      ctx.set('Cache-Control', 'no-store');
      represent(ctx, formatter, isPage ? { search, explanation } : explanation, { title: 'Explain a request' });
    },
  };
}
