/** Sets of distinct ids that are linked with each other, directly or not. */
export class LinkedIds {
  readonly #setOf = new Map<string, string[]>()

  /** @returns whether the id is new. */
  add(id: string): boolean {
    const isNew = !this.#setOf.has(id)
    if (isNew) this.#setOf.set(id, [id])
    return isNew
  }

  /** Both ids must have been added. */
  link(a: string, b: string): void {
    const sets = [this.#setOf.get(a)!, this.#setOf.get(b)!] as const
    const [large, small] = sets[0].length < sets[1].length ? [sets[1], sets[0]] : sets
    if (large === small) return
    for (const id of small) {
      large.push(id)
      this.#setOf.set(id, large)
    }
  }

  /** The id itself and all ids that are linked with it, directly or not. */
  of(id: string): readonly string[] {
    return this.#setOf.get(id)!
  }

  sets(): ReadonlySet<readonly string[]> {
    return new Set(this.#setOf.values())
  }
}
