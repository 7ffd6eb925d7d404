// Finds the known name that an unknown name was probably meant to be: either the nearest name, however far, or only a name
// that is a typing error away. Callers decide what to do with it.

/**
 * @param spellingsOf the texts that a candidate is compared by; the candidate itself by default.
 * @returns the candidate that needs the fewest changed characters; of several, the first.
 */
export function findNearestName<T extends string>(
  name: string,
  candidates: readonly T[],
  spellingsOf: (candidate: T) => readonly string[] = candidate => [candidate],
): T | null {
  return findNearestWithin(name, candidates, spellingsOf, () => Number.POSITIVE_INFINITY)
}

/** A text with more typing errors is taken for another name, even if it is long. */
const slipsMax = 3
const charsPerSlip = 3
/** Texts are truncated to this length, which loses no match, because it is far longer than any known name. */
const comparedCharsMax = 100

/**
 * The candidate that `name` is a typing error of: one change per three characters, at most three, ignoring case. A name far
 * longer than every candidate takes no time.
 * @returns null when no candidate is near; `name` may then be correct.
 * Source: ours.
 */
export function findIntendedName<T extends string>(
  name: string,
  candidates: readonly T[],
  spellingsOf: (candidate: T) => readonly string[] = candidate => [candidate],
): T | null {
  const folded = name.slice(0, comparedCharsMax).toLowerCase()
  return findNearestWithin(
    folded,
    candidates,
    candidate => spellingsOf(candidate).map(spelling => spelling.toLowerCase()),
    spelling => Math.min(slipsMax, Math.floor(Math.max(folded.length, spelling.length) / charsPerSlip)),
  )
}

/**
 * The candidate that `name` abbreviates by leaving out words after the first: `geoip` for `geoip_enabled`.
 * @returns the shortest such candidate, the first of equals; null when there is none.
 * Source: ours.
 */
export function findAbbreviatedName<T extends string>(
  name: string,
  candidates: readonly T[],
  spellingOf: (candidate: T) => string = candidate => candidate,
): T | null {
  if (name.length > comparedCharsMax) return null
  const words = name.toLowerCase().split('_')
  let nearest: T | null = null
  for (const candidate of candidates) {
    const whole = spellingOf(candidate).toLowerCase().split('_')
    if (whole.length <= words.length || whole[0] !== words[0]) continue
    let found = 0
    for (const word of whole) if (word === words[found]) found++
    if (found === words.length && (nearest === null || candidate.length < nearest.length)) nearest = candidate
  }
  return nearest
}

function findNearestWithin<T extends string>(
  name: string,
  candidates: readonly T[],
  spellingsOf: (candidate: T) => readonly string[],
  distanceMax: (spelling: string) => number,
): T | null {
  let nearest: T | null = null
  let nearestDistance = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    for (const spelling of spellingsOf(candidate)) {
      const max = distanceMax(spelling)
      if (Math.abs(name.length - spelling.length) > max) continue
      const distance = editDistance(name, spelling)
      if (distance > max || distance >= nearestDistance) continue
      nearest = candidate
      nearestDistance = distance
    }
  }
  return nearest
}

/**
 * How many characters must be inserted, deleted, replaced or swapped with their neighbour to turn `a` into `b`. Our own,
 * because a swap is the most common typing error and the usual libraries count it as two changes. Source: ours,
 * docs/decisions/0043-what-we-wrote-ourselves.md.
 */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      let distance = Math.min(previous[column]! + 1, current[column - 1]! + 1, substitution)
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (isSwap) distance = Math.min(distance, beforePrevious[column - 2]! + 1)
      current[column] = distance
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length]!
}
