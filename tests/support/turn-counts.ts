// Counts what a turn of this thread's event loop does with JSON, which is what requests make it work for. Unlike time, it
// is the same on every machine.

export interface TurnCounts {
  /** Characters that were parsed and written. */
  readonly jsonChars: number
  /** Numbers whose literals were kept, which take eighty times as long as text of their length. */
  readonly literals: number
}

interface OwnJson {
  parse(text: string, ...more: unknown[]): unknown
  stringify(value: unknown, ...more: unknown[]): string | undefined
  rawJSON(text: string): unknown
}

/** Call `end` in the same test: until then, `JSON` counts. @returns the most that one turn had of each. */
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
