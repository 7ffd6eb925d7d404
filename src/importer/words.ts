// Numbers in sentences for people.

/** @param one such as `record`. @param many such as `records`. @returns such as `1 record`, `1,200 records`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
