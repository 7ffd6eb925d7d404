/**
 * The Node options of all Pennon processes. Semi-spaces for new objects are limited to 8 MiB, as in `bin/pennon`; 32, the
 * default on a large machine, would cost a busy process 50 MiB more.
 */
export const nodeOptions: readonly string[] = [
  ...['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'],
  ...['--import', new URL('../../bin/preload.js', import.meta.url).href],
]

/** Adds the parent's process id, which every child of `serve` gets besides its settings (`data-lock.ts`). */
export function childEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...environment, PENNON_SERVE_PID: String(process.pid) }
}
