// The output of a command. Colours, and lines truncated to the width, are only for a terminal.

import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export interface Terminal {
  /** The width in columns; null if nothing may be truncated: for a file, a pipe, or a terminal of unknown size. */
  readonly width: number | null
  /** @returns the text unchanged if there are no colours. */
  paint(style: Style, text: string): string
}

/** A terminal without colours (`NO_COLOR`, `TERM=dumb`) still has a width. */
export function createTerminal(stream: NodeJS.WriteStream): Terminal {
  return {
    width: readTerminalWidth(stream),
    paint: (style, text) => styleText(style, text, { stream }),
  }
}

/**
 * The current number of columns, since a window may be resized. Null if the stream is not a terminal, or the size is
 * unknown: it is often 0 under `script`, CI and `docker exec -t`.
 */
export function readTerminalWidth({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number | null {
  return isTTY === true && columns > 0 ? columns : null
}

export const plainTerminal: Terminal = { width: null, paint: (_style, text) => text }
