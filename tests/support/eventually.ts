/** Long, so that a busy machine does not fail a test. A check usually succeeds soon; only a failure waits this long. */
const waitMsMax = 120_000

/** Polls until `check` returns a truthy value; after `waitMsMax`, throws its last error. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: { timeoutMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const deadline = Date.now() + (options.timeoutMs ?? waitMsMax)
  let last: unknown
  for (;;) {
    try {
      const value = await check()
      if (value) return value
      last = value
    } catch (error) {
      last = error
    }
    if (Date.now() > deadline) {
      if (last instanceof Error) throw last
      throw new Error(
        `${options.what ?? 'The condition'} did not come true in time; last seen: ${JSON.stringify(last)}`,
      )
    }
    await new Promise(resolve => setTimeout(resolve, 15))
  }
}
