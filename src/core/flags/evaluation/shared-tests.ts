// Filters that several flags of a project hold alike, as they often do (`email contains @us`, `country is NO`): one test
// for all of them, whose answer an evaluation works out once. A filter that stands alone costs nothing extra.

import type { JsonValue } from '../../json.ts'
import type { FilterTest } from './filter-test.ts'

/** What stands in a place of the remembered answers. */
export const notAsked = 0
export const holds = 1
export const fails = 2

interface KnownTest {
  readonly test: FilterTest
  /** Called when a second filter is found to be alike. */
  readonly share: () => void
}

/** Lives on with the compiled project: the next compilation adds to it. Answers have places that never change. */
export class SharedTests {
  private readonly known = new Map<string, KnownTest>()
  /** How many answers are remembered. */
  count = 0

  /** A place for another answer that an evaluation remembers, such as the membership of a cohort. */
  newPlace(): number {
    return this.count++
  }

  /** @param identity what makes two filters alike: equal identities must test the same thing. */
  testOf(identity: readonly JsonValue[], make: () => FilterTest): FilterTest {
    const text = JSON.stringify(identity)
    const known = this.known.get(text)
    if (known !== undefined) {
      known.share()
      return known.test
    }
    const made = this.rememberingOnceShared(make())
    this.known.set(text, made)
    return made.test
  }

  private rememberingOnceShared(test: FilterTest): KnownTest {
    let place = -1
    return {
      share: () => {
        if (place < 0) place = this.count++
      },
      test: (reader, decided) => {
        if (place < 0) return test(reader, decided)
        const known = reader.remembered[place]
        if (known === holds) return true
        // Beyond the end for an evaluation that began before the project had this place: it asks each time.
        if (known === fails) return false
        const answer = test(reader, decided)
        // An answer without the data that it needs means nothing, and the next flag has to learn that as well.
        if (reader.failure === null) reader.remembered[place] = answer ? holds : fails
        return answer
      },
    }
  }
}
