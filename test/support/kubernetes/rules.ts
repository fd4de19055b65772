/** Permissions of frontdesk in a cluster: to read everything, and to write Events and the status of Mappings. */
import type { Rule } from './client.ts';

export const readRule: Rule = {
  apiGroups: ['', 'discovery.k8s.io', 'gateway.local'],
  resources: [
    'services',
    'endpointslices',
    'mappings',
    'authservices',
    'jwtproviders',
    'ratelimitservices',
    'versions',
  ],
  verbs: ['get', 'list', 'watch'],
};

export const eventRule: Rule = { apiGroups: [''], resources: ['events'], verbs: ['create', 'get', 'patch'] };

export const statusRule: Rule = { apiGroups: ['gateway.local'], resources: ['mappings/status'], verbs: ['patch'] };
