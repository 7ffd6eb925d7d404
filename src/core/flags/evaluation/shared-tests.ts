// Gives equal filters of a project's flags, which are common (`email contains @us`, `country is NO`), one shared test
// whose answer an evaluation computes once. A filter that only one flag has costs nothing extra.

import type { JsonValue } from '../../json.ts'
import type { FilterTest } from './filter-test.ts'

/** The values of a remembered answer. */
export const notAsked = 0
export const holds = 1
export const fails = 2

interface KnownTest {
  readonly test: FilterTest
  /** Called when a second, equal filter is found. */
  readonly share: () => void
}

/** Kept with the compiled project: the next compilation adds to it. The place of an answer never changes. */
export class SharedTests {
  readonly #known = new Map<string, KnownTest>()
  /** How many answers are remembered. */
  count = 0

  /** Reserves a place for another remembered answer, such as the membership of a cohort. */
  newPlace(): number {
    return this.count++
  }

  /** @param identity two filters with equal identities must test the same thing. */
  testOf(identity: readonly JsonValue[], make: () => FilterTest): FilterTest {
    const text = JSON.stringify(identity)
    const known = this.#known.get(text)
    if (known !== undefined) {
      known.share()
      return known.test
    }
    const made = this.#rememberingOnceShared(make())
    this.#known.set(text, made)
    return made.test
  }

  #rememberingOnceShared(test: FilterTest): KnownTest {
    let place = -1
    return {
      share: () => {
        if (place < 0) place = this.count++
      },
      test: (reader, decided) => {
        if (place < 0) return test(reader, decided)
        const known = reader.remembered[place]
        if (known === holds) return true
        // In an evaluation that began before this place existed, the place is beyond the end of `remembered`: the test then
        // runs each time.
        if (known === fails) return false
        const answer = test(reader, decided)
        // If the data could not be loaded, the answer is not remembered, so that the next flag that asks for it fails too.
        if (reader.failure === null) reader.remembered[place] = answer ? holds : fails
        return answer
      },
    }
  }
}
