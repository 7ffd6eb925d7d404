// The output of a command. Only a terminal gets colours, and lines cut to its width.

import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export interface Terminal {
  /** Columns; null if nothing may be cut: for a file, a pipe, or a terminal of unknown size. */
  readonly width: number | null
  /** @returns the text unchanged if there are no colours. */
  paint(style: Style, text: string): string
}

/** A terminal without colours (`NO_COLOR`, `TERM=dumb`) still has a width. */
export function terminalOf(stream: NodeJS.WriteStream): Terminal {
  return {
    width: widthOf(stream),
    paint: (style, text) => styleText(style, text, { stream }),
  }
}

/**
 * The present number of columns, since a window may be resized; null if it is no terminal, or its size is unknown: under
 * `script`, CI and `docker exec -t` it is often 0.
 */
export function widthOf({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number | null {
  return isTTY === true && columns > 0 ? columns : null
}

export const plainTerminal: Terminal = { width: null, paint: (_style, text) => text }
