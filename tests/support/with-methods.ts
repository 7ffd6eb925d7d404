/** A copy of the target with other methods in place of some. */
export function withMethods<Target extends object>(target: Target, methods: Partial<Target>): Target {
  return new Proxy(target, {
    get(of, name) {
      if (Object.hasOwn(methods, name)) return Reflect.get(methods, name)
      const value: unknown = Reflect.get(of, name, of)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
}

/** A copy of the target whose methods are called by `call`, with their names. */
export function wrapMethods<Target extends object>(
  target: Target,
  call: (name: string, run: () => Promise<unknown>) => Promise<unknown>,
): Target {
  return new Proxy(target, {
    get(of, name) {
      const value: unknown = Reflect.get(of, name, of)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => call(String(name), () => Reflect.apply(value, of, args))
    },
  })
}
