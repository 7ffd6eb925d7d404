/** Long, since a busy machine must not fail a test: what comes true does so at once, and only a failure waits for so long. */
const waitMsMax = 60_000

/** Waits until `check` returns something truthy, or throws what it last threw. Polls; never sleeps longer than needed. */
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
