// Wraps every method of a store at once.

export type Methods<T> = { [K in keyof T]: (...args: never[]) => Promise<unknown> }
type Method = (...args: never[]) => Promise<unknown>

export function wrapMethods<T extends Methods<T>>(methods: T, wrap: (method: Method) => Method): T {
  return Object.fromEntries(Object.entries<Method>(methods).map(([name, method]) => [name, wrap(method)])) as T
}

/** The same methods, whose failures pass through `toError`, such as those of an engine that become PortErrors. */
export function translateErrors<T extends Methods<T>>(methods: T, toError: (cause: unknown) => unknown): T {
  return wrapMethods(methods, method => async (...args) => {
    try {
      return await method(...args)
    } catch (cause) {
      throw toError(cause)
    }
  })
}
