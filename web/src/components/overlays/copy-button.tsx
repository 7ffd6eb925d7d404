import { useEffect, useRef, useState } from 'react'
import { Button, IconButton } from '../controls/button.tsx'
import { isApple } from '../is-apple.ts'
import { Outside, type OutsideProps } from '../text/outside.tsx'
import { showOutsideText } from '../text/outside-text.ts'
import css from './copy.module.css'
import { PopoverAt } from './popover.tsx'

export interface CopyButtonProps {
  /** What is copied; a function if it is costly to make. */
  readonly text: string | (() => string)
  /** Shown on a button with words, the tooltip of one without. */
  readonly label: string
  readonly hasWords?: boolean
}

const copiedMs = 2_000

export function CopyButton({ text, label, hasWords = false }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false)
  const [selected, setSelected] = useState<{ anchor: Element; text: string } | null>(null)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), copiedMs)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async (anchor: Element) => {
    const whole = typeof text === 'function' ? text() : text
    try {
      await navigator.clipboard.writeText(whole)
      setCopied(true)
    } catch {
      // There is no clipboard on plain http, and the browser may refuse it elsewhere.
      setSelected({ anchor, text: whole })
    }
  }
  const icon = isCopied ? 'check' : 'copy'
  return (
    <>
      {hasWords ? (
        <Button icon={icon} onPress={({ target }) => copy(target)}>
          {label}
        </Button>
      ) : (
        <IconButton icon={icon} label={isCopied ? 'Copied' : label} onPress={({ target }) => copy(target)} />
      )}
      <span role="status" className="visually-hidden">
        {isCopied && 'Copied'}
      </span>
      <PopoverAt title="Copy by hand" anchor={selected?.anchor ?? null} onClose={() => setSelected(null)}>
        <SelectedText text={selected?.text ?? ''} />
      </PopoverAt>
    </>
  )
}

function SelectedText({ text }: { text: string }) {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.select(), [])
  return (
    <>
      <p>
        The browser gives no access to the clipboard here. The text is selected: press{' '}
        <kbd>{isApple ? '⌘C' : 'Ctrl C'}</kbd>.
      </p>
      <textarea ref={area} className={css.copyArea} aria-label="Text to copy" readOnly value={text} />
    </>
  )
}

/** Text from outside, with a button that copies the whole if its middle is left out. */
export function CopyableOutside(props: OutsideProps) {
  if (!showOutsideText(props.text, props).isTruncated) return <Outside {...props} />
  return (
    <span className={css.withCopy}>
      <Outside {...props} />
      <CopyButton text={props.text} label="Copy the whole text" />
    </span>
  )
}
