// Wraps every method of a store at once: failures become PortErrors, and text arguments become storable on both engines.

export type Methods<T> = { [K in keyof T]: (...args: never[]) => Promise<unknown> }
type Method = (...args: never[]) => Promise<unknown>

export function wrapMethods<T extends Methods<T>>(methods: T, wrap: (method: Method) => Method): T {
  return Object.fromEntries(Object.entries<Method>(methods).map(([name, method]) => [name, wrap(method)])) as T
}

/** The same methods; `toError` converts the errors that they throw, for example an engine's errors to PortErrors. */
export function translateErrors<T extends Methods<T>>(methods: T, toError: (cause: unknown) => unknown): T {
  return wrapMethods(methods, method => async (...args) => {
    try {
      return await method(...args)
    } catch (cause) {
      throw toError(cause)
    }
  })
}

/**
 * The same methods; text arguments, and texts at the top level of object arguments, are made storable: PostgreSQL has no
 * NUL in text, and neither engine keeps half of a surrogate pair. JSON text escapes both.
 */
export function makeTextArgumentsStorable<T extends Methods<T>>(methods: T): T {
  return wrapMethods(
    methods,
    method =>
      async (...args) =>
        method(...(args.map(toStorable) as never[])),
  )
}

function toStorable(argument: unknown): unknown {
  if (typeof argument === 'string') return toStorableText(argument)
  if (typeof argument !== 'object' || argument === null || Array.isArray(argument)) return argument
  return toStorableFields(argument)
}

/** The object itself, or a copy if one of its direct texts cannot be stored. Nested values stay as they are. */
export function toStorableFields<T extends object>(fields: T): T {
  const replaced: Record<string, string> = {}
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value !== 'string') continue
    const text = toStorableText(value)
    if (text !== value) replaced[key] = text
  }
  return Object.keys(replaced).length === 0 ? fields : { ...fields, ...replaced }
}

/** NUL and lone surrogates become U+FFFD. Source: docs/wire/ingestion.md 2.2. */
export function toStorableText(text: string): string {
  return (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text).toWellFormed()
}
