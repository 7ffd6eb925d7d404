/**
 * What every process of ours starts Node with. New objects get 8 MiB, as in `bin/pennon`; 32, the usual of a large machine,
 * is 50 MiB more in a busy process.
 */
export const nodeOptions: readonly string[] = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8']

/** What every child of `serve` is started with, beside its own settings: who its parent is (`data-lock.ts`). */
export function childEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...environment, PENNON_SERVE_PID: String(process.pid) }
}
