// Runs the tests of a condition set or of a rule in order, and stops when the time is up.

import type { SubjectReader } from './evaluation-subject.ts'
import type { DecidedOutcomes, FilterTest } from './filter-test.ts'
import { outOfTime } from './out-of-time.ts'

/**
 * Whether all tests hold; stops at the first that does not. False means nothing if `reader.failure` is set;
 * `reader.pausedTestIndex` is then the test to resume with.
 */
export function doAllTestsMatch(
  tests: readonly FilterTest[],
  fromTest: number,
  reader: SubjectReader,
  decided: DecidedOutcomes,
): boolean {
  for (let index = fromTest; index < tests.length; index++) {
    const holds = tests[index]!(reader, decided)
    if (reader.trace !== null) reader.trace.testAnswered(index, holds, reader.failure)
    if (reader.failure !== null) {
      reader.pausedTestIndex = index
      return false
    }
    if (!holds) return false
    if (isTimeUpAfterTest(index, tests.length, reader)) {
      reader.pausedTestIndex = index + 1
      reader.failure = outOfTime
      return false
    }
  }
  return true
}

/** Skips the check after the last test, because the caller checks again anyway. */
export function isTimeUpAfterTest(index: number, count: number, reader: SubjectReader): boolean {
  return index + 1 < count && (index & reader.lookMask) === reader.lookMask && reader.isTimeUp()
}
