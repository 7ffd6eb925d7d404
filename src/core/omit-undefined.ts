/** An object type without undefined values: keys that may be undefined become optional. */
type DefinedOf<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Leaves out the keys whose value is undefined: in a spread they would overwrite earlier values. */
export function omitUndefined<T extends object>(object: T): DefinedOf<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as DefinedOf<T>
}
