/** The pages that the `info_url` of an error links to: they say what a problem means and what to do about it. */
import type { InternalRoute } from '#gateway';
import { createShowProblem, homeOf, type ProblemTable, redirectTo, requestContext } from '#http';

const prefix = '/gateway/v0/problems';

/**
 * The path of the list of all problems. The page of a problem is below it, such as `/gateway/v0/problems/not-found`.
 */
export const problemPagesPath = `${prefix}/`;

/** Relative, so that the pages are the same below every mount path. */
const linksToHome = {
  above: [{ href: '../../../', text: 'Home' }],
  related: [{ href: '../../../', text: 'All routes and API docs' }],
};

/** `table` is in the order of the list. The pages need no credentials, and are the same for every request. */
export function createProblemPages(table: ProblemTable): InternalRoute {
  const showAlone = createShowProblem(table);
  const showBelowHome = createShowProblem(table, { links: linksToHome });
  return {
    name: 'problems',
    prefix,
    forAdmins: false,
    async run(ctx) {
      if (ctx.path === prefix)
        return redirectTo(ctx, `${requestContext(ctx).basePath}${problemPagesPath}${ctx.search}`);
      const showProblem = homeOf(ctx) === undefined ? showAlone : showBelowHome;
      showProblem(ctx, ctx.path.slice(problemPagesPath.length));
    },
  };
}
