// Hands and keys: turns pointer, wheel and keyboard events on the picture into what they mean. Draws nothing. The page
// keeps its own scrolling: a plain wheel zooms only where the reader has put the focus into the picture.

export interface Deeds {
  width(): number; // of the picture, CSS pixels
  zoom(factor: number, share: number): void;
  pan(share: number): void; // of the width
  scroll(pixels: number): void; // lanes
  fit(): void;
  hover(x: number | null, y: number): void;
  choose(x: number, y: number): void;
  come_close(x: number, y: number): void;
  measure(from: number, to: number, is_done: boolean): void; // shares of the width
  is_measuring(): boolean; // without a key held
  clear(): void;
  step_match(is_forward: boolean): void;
  measure_view(): void;
  search(): void;
  remind(): void; // that a wheel needs the focus
}

const kDragAfter = 4; // pixels: less is a click

export function listen_to_pointer(surface: HTMLElement, root: HTMLElement, deeds: Deeds): void {
  const fingers = new Map<number, { x: number; y: number }>();
  let pressed: { x: number; y: number; is_measure: boolean; has_moved: boolean } | null = null;
  let pinch = 0;

  const place = (event: MouseEvent) => {
    const box = surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const at = place(event);
    fingers.set(event.pointerId, at);
    surface.setPointerCapture(event.pointerId);
    if (fingers.size === 1) pressed = { ...at, is_measure: event.shiftKey || deeds.is_measuring(), has_moved: false };
    if (fingers.size === 2) {
      pressed = null;
      pinch = spread(fingers);
    }
    root.classList.add("is-pressed");
  });
  surface.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      deeds.hover(at.x, at.y);
      return;
    }
    fingers.set(event.pointerId, at);
    if (fingers.size === 2) {
      const now = spread(fingers);
      const middle = [...fingers.values()].reduce((sum, { x }) => sum + x / 2, 0);
      if (pinch > 8 && now > 8) deeds.zoom(now / pinch, middle / deeds.width());
      pinch = now;
      return;
    }
    if (!pressed) return;
    if (!pressed.has_moved && Math.hypot(at.x - pressed.x, at.y - pressed.y) < kDragAfter) return;
    pressed.has_moved = true;
    deeds.hover(null, 0);
    if (pressed.is_measure) {
      deeds.measure(pressed.x / deeds.width(), at.x / deeds.width(), false);
    } else {
      deeds.pan((before.x - at.x) / deeds.width());
      deeds.scroll(before.y - at.y);
    }
  });
  const release = (event: PointerEvent): void => {
    if (!fingers.delete(event.pointerId)) return;
    root.classList.remove("is-pressed");
    const at = place(event);
    if (pressed && event.type === "pointerup") {
      if (!pressed.has_moved) deeds.choose(at.x, at.y);
      else if (pressed.is_measure) deeds.measure(pressed.x / deeds.width(), at.x / deeds.width(), true);
    }
    if (fingers.size === 0) pressed = null;
  };
  surface.addEventListener("pointerup", release);
  surface.addEventListener("pointercancel", release);
  surface.addEventListener("pointerleave", () => deeds.hover(null, 0));
  surface.addEventListener("dblclick", (event) => {
    const at = place(event);
    deeds.come_close(at.x, at.y);
  });
  surface.addEventListener(
    "wheel",
    (event) => {
      const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      const across = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
      const is_across = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (is_across && !event.ctrlKey) {
        event.preventDefault();
        deeds.pan(across / deeds.width());
      } else if (event.ctrlKey || event.metaKey || root.contains(document.activeElement)) {
        event.preventDefault();
        // A pinch on a touchpad comes as small steps with ctrl; a wheel's click as a hundred.
        const by = Math.max(-120, Math.min(120, event.deltaY * unit)) * (event.ctrlKey ? 3 : 1);
        deeds.zoom(Math.exp(-by / 400), place(event).x / deeds.width());
      } else {
        deeds.remind();
      }
    },
    { passive: false },
  );
}

function spread(fingers: ReadonlyMap<number, { x: number; y: number }>): number {
  const [a, b] = [...fingers.values()];
  return a && b ? Math.abs(a.x - b.x) : 0;
}

/** Keys that mean the same in the picture and among the lanes. True where the key was taken. */
export function take_key(event: KeyboardEvent, deeds: Deeds): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  switch (event.key) {
    case "+":
    case "=":
      deeds.zoom(1.5, 0.5);
      return true;
    case "-":
    case "_":
      deeds.zoom(1 / 1.5, 0.5);
      return true;
    case "0":
      deeds.fit();
      return true;
    case "n":
      deeds.step_match(true);
      return true;
    case "N":
      deeds.step_match(false);
      return true;
    case "m":
      deeds.measure_view();
      return true;
    case "/":
      deeds.search();
      return true;
    case "Escape":
      deeds.clear();
      return true;
    default:
      return false;
  }
}

/** Keys of the picture itself: arrows move. */
export function take_picture_key(event: KeyboardEvent, deeds: Deeds): boolean {
  if (take_key(event, deeds)) return true;
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  switch (event.key) {
    case "ArrowLeft":
      deeds.pan(event.shiftKey ? -0.5 : -0.1);
      return true;
    case "ArrowRight":
      deeds.pan(event.shiftKey ? 0.5 : 0.1);
      return true;
    case "ArrowUp":
      deeds.scroll(-48);
      return true;
    case "ArrowDown":
      deeds.scroll(48);
      return true;
    case "Home":
      deeds.fit();
      return true;
    default:
      return false;
  }
}
