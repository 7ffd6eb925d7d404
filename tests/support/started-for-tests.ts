import { after, before } from 'node:test'

type Endable = { stop(): unknown } | { close(): unknown }

/**
 * Starts something before the first test of the file or `describe` that calls this, and ends it after the last; until then it
 * has no fields. Hooks of a file start concurrently, so work that needs it belongs into `start`.
 * @param skip as the option of the tests: nothing is started if they are skipped.
 */
export function startedForTests<T extends Endable>(start: () => Promise<T>, skip: string | false = false): T {
  const started = {} as T
  before(async () => {
    if (skip === false) Object.defineProperties(started, Object.getOwnPropertyDescriptors(await start()))
  })
  after(async () => {
    if ('stop' in started) await started.stop()
    if ('close' in started) await started.close()
  })
  return started
}
