// Loaded into the process of each test file before anything that loads node:test: stops the tracking of promises once all
// tests are known. node:test follows every promise through an async hook, to find the suite in which a test is declared and
// the test in which an exception was thrown. Suites need it while files are loaded; in the tests themselves it is most of
// the cost of `await`. An exception that no test awaits then fails its file, without the name of a test.

import asyncHooks, { type HookCallbacks } from 'node:async_hooks'
import { isMainThread } from 'node:worker_threads'

/** False in threads and processes that tests start; the processes have TESTS_PROCESS, the id of their test file's process. */
export const isTestFile =
  isMainThread && process.env.NODE_TEST_CONTEXT === 'child-v8' && process.env.TESTS_PROCESS === undefined

if (isTestFile) {
  const { createHook } = asyncHooks
  let stopTracking = (): void => undefined
  // The first hook is node:test's, which takes the function when it is loaded.
  asyncHooks.createHook = (callbacks: HookCallbacks) => {
    asyncHooks.createHook = createHook
    const tracking = createHook(callbacks)
    stopTracking = () => {
      stopTracking = () => undefined
      tracking.disable()
      createHook({ ...callbacks, trackPromises: false }).enable()
    }
    return tracking
  }
  const { beforeEach } = await import('node:test')
  // Tests begin when all files are loaded; a hook `before` would run at once.
  beforeEach(() => stopTracking())
}
