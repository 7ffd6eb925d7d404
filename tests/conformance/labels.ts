// The placeholder `<label:x>`: any text; equal labels represent equal texts, different labels different ones.

/** The texts that labels of one vector represent so far, by name. */
type Texts = Map<string, string>

export class Label {
  readonly name: string
  readonly #texts: Texts

  constructor(name: string, texts: Texts) {
    this.name = name
    this.#texts = texts
  }

  /** A label represents the first text that it accepts. */
  accepts(actual: unknown): boolean {
    if (typeof actual !== 'string') return false
    const known = this.#texts.get(this.name)
    if (known !== undefined) return known === actual
    if ([...this.#texts.values()].includes(actual)) return false
    this.#texts.set(this.name, actual)
    return true
  }

  /** Runs a comparison that may turn out not to be the right one, so labels keep nothing of it. */
  tried<T>(compare: () => T): T {
    const before = new Map(this.#texts)
    try {
      return compare()
    } finally {
      this.#texts.clear()
      for (const [name, text] of before) this.#texts.set(name, text)
    }
  }

  /** The text that it represents, once that is known. */
  toString(): string {
    return this.#texts.get(this.name) ?? this.toJSON()
  }

  toJSON(): string {
    return `<label:${this.name}>`
  }
}

/** Runs a comparison without keeping what the labels in `expected` stood for in it. */
export function tried<T>(expected: unknown, compare: () => T): T {
  const label = labelIn(expected)
  return label === undefined ? compare() : label.tried(compare)
}

/** All labels of a vector share their texts, so one of them is enough. */
function labelIn(value: unknown): Label | undefined {
  if (value instanceof Label) return value
  if (typeof value !== 'object' || value === null) return undefined
  return Object.values(value)
    .map(labelIn)
    .find(label => label !== undefined)
}
