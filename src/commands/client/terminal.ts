// What the output of a command is written to. Only a terminal gets colours, and lines that are cut to its width.

import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export interface Terminal {
  /** Columns; null when nothing may be cut: the output is a file, a pipe, or a terminal that says no size. */
  readonly width: number | null
  /** The text as it is where there are no colours. */
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
 * Columns as they are now, since a window may be resized at any moment; null when it is no terminal, or one whose size is not
 * known: those of `script`, CI and `docker exec -t` often have 0 columns.
 */
export function widthOf({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number | null {
  return isTTY === true && columns > 0 ? columns : null
}

export const plainTerminal: Terminal = { width: null, paint: (_style, text) => text }
