// Counts the JSON work of a turn of this thread's event loop, which is the work that requests cause. Unlike time, it is
// the same on every machine.

export interface TurnCounts {
  /** Characters parsed and written. */
  readonly jsonChars: number
  /** Numbers whose literals were kept, which take eighty times as long as text of the same length. */
  readonly literals: number
}

interface OwnJson {
  parse(text: string, ...more: unknown[]): unknown
  stringify(value: unknown, ...more: unknown[]): string | undefined
  rawJSON(text: string): unknown
}

/** Counts `JSON` calls until `end`, which must be called in the same test. @returns the maxima of one turn. */
export function watchTurns(): { end(): TurnCounts } {
  const json = JSON as unknown as OwnJson
  const { parse, stringify, rawJSON } = json
  const most = { jsonChars: 0, literals: 0 }
  const turn = { jsonChars: 0, literals: 0 }
  let isWatching = true
  const endTurn = () => {
    most.jsonChars = Math.max(most.jsonChars, turn.jsonChars)
    most.literals = Math.max(most.literals, turn.literals)
    Object.assign(turn, { jsonChars: 0, literals: 0 })
    if (isWatching) setImmediate(endTurn)
  }
  Object.assign(json, {
    parse: (text: string, ...more: unknown[]) => {
      turn.jsonChars += text.length
      return parse(text, ...more)
    },
    stringify: (value: unknown, ...more: unknown[]) => {
      const text = stringify(value, ...more)
      turn.jsonChars += text?.length ?? 0
      return text
    },
    rawJSON: (text: string) => {
      turn.literals++
      return rawJSON(text)
    },
  } satisfies OwnJson)
  setImmediate(endTurn)
  return {
    end: () => {
      isWatching = false
      endTurn()
      Object.assign(json, { parse, stringify, rawJSON })
      return most
    },
  }
}
