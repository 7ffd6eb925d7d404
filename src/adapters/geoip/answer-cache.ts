// Caches the answers of a costly function for recently used texts.

/**
 * Keeps two generations: the texts used since the last change of generations, and the texts used before it. A hit in the
 * newer generation costs one look-up. At most `countMax` answers are kept. The caller has to bound the length of texts.
 */
export function cacheAnswers<T>(answer: (text: string) => T, countMax: number): (text: string) => T {
  let young = new Map<string, T>()
  let old = new Map<string, T>()
  return text => {
    let value = young.get(text)
    if (value !== undefined || young.has(text)) return value as T
    value = old.has(text) ? (old.get(text) as T) : answer(text)
    if (young.size >= countMax / 2) {
      old = young
      young = new Map()
    }
    young.set(text, value)
    return value
  }
}
