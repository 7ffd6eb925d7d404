import { type ReactElement, type ReactNode, useMemo } from 'react'
import { Popover as AriaPopover, DialogTrigger } from 'react-aria-components'
import css from '../controls/popups.module.css'

export interface PopoverProps {
  readonly title: string
  readonly isTitleHidden?: boolean
  readonly children: ReactNode
}

/** A button, which is `button`, and what it opens beside it. */
export function PopoverButton({ button, ...card }: PopoverProps & { button: ReactElement }) {
  return (
    <DialogTrigger>
      {button}
      <AriaPopover className={css.popover!} aria-label={card.title} offset={4}>
        <Card {...card} />
      </AriaPopover>
    </DialogTrigger>
  )
}

export interface AnchorProps {
  /** Where it opens. It is closed while there is no element. */
  readonly anchor: Element | null
  readonly onClose: () => void
}

/** A popover at any element: one for all rows of a grid. */
export function PopoverAt({ anchor, onClose, ...card }: PopoverProps & AnchorProps) {
  return (
    <AnchoredPopover label={card.title} anchor={anchor} onClose={onClose}>
      <Card {...card} />
    </AnchoredPopover>
  )
}

/** The popover itself is the dialog: a dialog in it would leave its hidden close buttons outside of both. */
export function AnchoredPopover(props: AnchorProps & { label: string; isAtEnd?: boolean; children: ReactNode }) {
  const { anchor, onClose, label, isAtEnd = false, children } = props
  const triggerRef = useMemo(() => ({ current: anchor }), [anchor])
  return (
    <AriaPopover
      className={css.popover!}
      aria-label={label}
      triggerRef={triggerRef}
      isOpen={anchor !== null}
      onOpenChange={isOpen => {
        if (!isOpen) onClose()
      }}
      placement={isAtEnd ? 'bottom end' : 'bottom'}
      offset={4}
    >
      {children}
    </AriaPopover>
  )
}

function Card({ title, isTitleHidden = false, children }: PopoverProps) {
  return (
    <div className={css.card}>
      {!isTitleHidden && <h2>{title}</h2>}
      {children}
    </div>
  )
}
