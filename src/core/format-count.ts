/**
 * A number and the noun that it counts, as people read it: `1 record`, `1,234 records`. @param many the plural, if it is
 * not `one` with an s.
 */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}

/** The first items of a list, and a last item that says how many were left out: `and 352,980 more`. */
export function truncateList(list: readonly string[], countMax = 20): readonly string[] {
  const more = list.length - countMax
  return more <= 0 ? list : [...list.slice(0, countMax), `and ${more.toLocaleString('en')} more`]
}
