/**
 * Runs work that cleans up after itself when aborted. SIGINT or SIGTERM aborts it; then this process prints a line and exits
 * with code 1.
 * @param onEnd called when the work has ended, before anything is printed.
 */
export async function stopOnSignals<T>(work: (signal: AbortSignal) => Promise<T>, onEnd: () => void): Promise<T> {
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort(new Error(signal)))
  try {
    return await work(stopping.signal)
  } catch (cause) {
    if (cause !== stopping.signal.reason) throw cause
    onEnd()
    process.stderr.write('pennon: canceled; temporary files were removed\n')
    process.exit(1)
  } finally {
    onEnd()
  }
}
