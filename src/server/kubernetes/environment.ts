/** The variables that Kubernetes sets in a pod, and that kubectl reads. They are not settings of frontdesk. */
export function kubernetesEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
