// Turns the failures of an engine into PortErrors, for every method of a store at once.

type AsyncMethods<T> = { [K in keyof T]: (...args: never[]) => Promise<unknown> }

/** The same methods, whose failures pass through `toError`. */
export function translateErrors<T extends AsyncMethods<T>>(methods: T, toError: (cause: unknown) => unknown): T {
  const entries = Object.entries(methods) as [string, (...args: never[]) => Promise<unknown>][]
  return Object.fromEntries(
    entries.map(([name, method]) => [
      name,
      async (...args: never[]) => {
        try {
          return await method(...args)
        } catch (cause) {
          throw toError(cause)
        }
      },
    ]),
  ) as T
}
