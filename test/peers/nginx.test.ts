/** nginx as the recipe configures it: it calls the auth service with auth_request. */
import { isInstalled } from '../support/programs/installed.ts';
import { nginx } from '../support/programs/proxy-process.ts';
import { authCallerCases } from './auth-caller.ts';
import { readProxyRecipe } from './recipe.ts';

describe('nginx in front of a service, with the auth service', () => {
  if (isInstalled('nginx'))
    authCallerCases({ program: nginx, recipe: (ports) => readProxyRecipe('nginx', ports), unavailable: 503 });
  else it('needs nginx on the PATH');
});
