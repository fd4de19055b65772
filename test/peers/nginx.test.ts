/** nginx asks the auth service with auth_request, where it is installed. */
import { isInstalled } from '../support/programs/installed.ts';
import { nginx } from '../support/programs/proxy-process.ts';
import { authCallerCases } from './auth-caller.ts';
import { readProxyRecipe } from './recipe.ts';

describe('nginx in front of a service, with the auth service beside it', () => {
  if (isInstalled('nginx'))
    authCallerCases({ program: nginx, recipe: (ports) => readProxyRecipe('nginx', ports), unavailable: 503 });
  else it('is tested where nginx is on the PATH');
});
