import { readableBytes } from './readable-bytes.ts'

/** Shows progress as one line on stderr that is overwritten; shows nothing if stderr is not a terminal. */
export function copyProgress(what: string): { show(bytes: number, bytesInAll: number): void; end(): void } {
  const { isTTY } = process.stderr
  let isShown = false
  return {
    show: (bytes, bytesInAll) => {
      if (!isTTY) return
      isShown = true
      const percent = bytesInAll === 0 ? 100 : Math.min(100, Math.floor((100 * bytes) / bytesInAll))
      process.stderr.write(`\r${what} ${percent} %, ${readableBytes(bytes)} \u001b[K`)
    },
    end: () => {
      if (isShown) process.stderr.write('\r\u001b[K')
    },
  }
}
