/** A number with what it counts, as people read it: `1 record`, `1,234 records`. @param many unless it is `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
